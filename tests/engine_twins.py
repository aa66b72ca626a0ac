"""Models in torch and in the engine in JavaScript, and what must be the same in both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.explorer.description import EngineDescription
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq, build_model
from attnlab.specs import (
    GridLearned,
    Learned,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Relative,
    Rotary,
    Seq2SeqModel,
    TokensModel,
    VitModel,
)
from attnlab.taps import edit, record, taps
from every_model import COLUMNS, WORDS
from js_engine import EngineModel, engine, pixels, tensor

VOCABULARY, START, LENGTH = 11, 10, 5
Shape = tuple[int, int, int]
GREY, COLOUR = (1, 8, 12), (3, 12, 18)
SCALING = (0.1, 0.5)
TEMPERATURE = 0.7
SMALL: dict[str, Any] = {"width": 12, "heads": 3, "hidden": 5}
CLOSE = 1e-5  # of the largest number: a tenth of what is promised
EXAMPLE, ANSWER = 3, [3, 1, 4, 1, 5]  # the seed of what is resampled from, and what is fed with it


@dataclass(frozen=True)
class Twin:
    """A model in torch and in the engine, and one input for both."""

    spec: ModelSpec
    described: EngineDescription
    model: Model
    engine: EngineModel
    source: Tensor
    given: dict[str, Any]
    means: dict[str, Tensor]

    @property
    def decodes(self) -> bool:
        return isinstance(self.model, Seq2Seq)

    @property
    def stack(self) -> str:
        """What the answer is read from."""
        return "decoder" if self.decodes else "encoder"

    @torch.no_grad()
    def said(self, source: Tensor | None = None) -> list[int]:
        how: dict[str, Any] = {"start": START, "length": LENGTH} if self.decodes else {}
        found: list[int] = self.model.answer(self.source if source is None else source, **how)[0].tolist()
        return found

    def inputs(self, said: Sequence[int], source: Tensor | None = None) -> tuple[Tensor, ...]:
        """What the model is given while it says ``said``."""
        first = self.source if source is None else source
        return (first, torch.tensor([[START, *said[:-1]]])) if self.decodes else (first,)


def make_twin(name: str, spec: ModelSpec, *, image: Shape = GREY, length: int = 7) -> Twin:
    """A model with random weights; all of them, so that no bias is zero and no norm is plain."""
    decodes = isinstance(spec, Seq2SeqModel | PatchSeq2SeqModel)
    vocabulary = 2 if isinstance(spec, TokensModel) and spec.pooling == "lowest" else VOCABULARY
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=vocabulary, tokens=WORDS, image=image, columns=COLUMNS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    start, count = (START, LENGTH) if decodes else (None, 1)
    described = EngineDescription(
        spec,
        vocabulary,
        WORDS,
        image,
        SCALING,
        start,
        None,
        count,
        columns=COLUMNS,
        temperature=TEMPERATURE,
    )
    source, given = make_input(spec, image=image, length=length, seed=1)
    means = _made_up_means(model, source)
    _, example = make_input(spec, image=image, length=max(1, length - 2), seed=EXAMPLE)
    examples = [{**example, "answer": ANSWER} if decodes else example]
    made = engine().make(name, described, model.state_dict(), means=means, examples=examples)
    return Twin(spec, described, model, made, source, given, means)


def make_input(spec: ModelSpec, *, image: Shape, length: int, seed: int) -> tuple[Tensor, dict[str, Any]]:
    """One input for torch and for the engine."""
    chance = torch.Generator().manual_seed(seed)
    if isinstance(spec, Seq2SeqModel | TokensModel):
        tokens = torch.randint(VOCABULARY, (1, length), generator=chance)
        return tokens, {"tokens": tokens[0].tolist(), "labels": [str(each) for each in tokens[0].tolist()]}
    down, across = (spec.rows, spec.columns) if isinstance(spec, PatchSeq2SeqModel) else (1, 1)
    shape = (image[0], image[1] * down, image[2] * across)
    pixel = torch.randint(256, shape, generator=chance, dtype=torch.uint8)
    mean, deviation = SCALING
    plain = (pixel.float() / 255 - mean) / deviation
    return plain if image[0] == 1 else plain[None], pixels(pixel)


@torch.no_grad()
def outputs(model: Model, *inputs: Tensor) -> dict[str, Tensor]:
    """z (H, T, K) and hidden values (T, N) of one example."""
    names = [name for name in taps(model) if name.endswith((".z", ".hidden"))]
    with record(model, *names) as seen:
        model(*inputs)
    return {name: value[0] for name, value in seen.items()}


def _made_up_means(model: Model, source: Tensor) -> dict[str, Tensor]:
    """Numbers of the shapes of means, where there can be of two places less than the input has."""
    inputs = (source, torch.zeros(1, LENGTH, dtype=torch.long)) if isinstance(model, Seq2Seq) else (source,)
    values = {name: torch.randn_like(value) for name, value in outputs(model, *inputs).items()}
    return {name: value[..., : max(1, value.shape[-2] - 2), :] for name, value in values.items()}


def close(found: Tensor, wanted: Tensor) -> bool:
    """Whether both have one shape and nearly the same numbers."""
    return found.shape == wanted.shape and bool((found - wanted).abs().max() <= CLOSE * wanted.abs().max())


Change = Callable[[Tensor], Tensor]


@torch.no_grad()
def agree(twin: Twin, changes: Mapping[str, Change] | None = None, **question: Any) -> None:
    """Both give the same answer, probabilities, patterns, guesses and hidden values, with edits in both."""
    model, paths = twin.model, [each.path for each in twin.model.sites()]
    read = [name for name in taps(model) if name.startswith(twin.stack)]
    streams = [name for name in read if name.endswith("feed_residual.out")]
    feeds = [name for name in taps(model) if name.endswith(".hidden")]
    with edit(model, changes or {}):
        said = twin.said()
        with record(model, *(f"{path}.pattern" for path in paths), *streams, *feeds) as seen:
            logits = model(*twin.inputs(said)).reshape(len(said), -1)
    feed = feeds[-1].removesuffix(".hidden") if feeds else None
    scene = twin.engine.scene(twin.given, **question, want={"neurons": feed})
    _same_answer(scene["answer"], said, (logits / TEMPERATURE).softmax(dim=-1))
    assert scene["patterns"].keys() == set(paths)
    for path in paths:
        assert close(tensor(scene["patterns"][path]), seen[f"{path}.pattern"][0]), path
    assert [each["path"] for each in scene["guesses"]] == streams
    for guess in scene["guesses"]:
        wanted = (_early(model, seen[guess["path"]]) / TEMPERATURE).softmax(dim=-1)
        assert close(tensor(guess["values"]), wanted), guess["path"]
    if streams:
        assert close(tensor(scene["guesses"][-1]["values"]), (logits / TEMPERATURE).softmax(dim=-1))
    if feeds:
        assert close(tensor(scene["neurons"]["values"]), seen[feeds[-1]][0])


def _same_answer(answer: Any, said: list[int], chances: Tensor) -> None:
    assert [int(each["label"]) for each in answer["tokens"]] == said
    for row, token in zip(chances, answer["tokens"], strict=True):
        order = row.argsort(descending=True).tolist()[:5]
        assert [int(label) for label, _ in token["top"]] == order
        assert [chance for _, chance in token["top"]] == pytest.approx(row[order].tolist(), rel=1e-4)
    product = torch.prod(chances[range(len(said)), said]).item()
    assert answer["probability"] == pytest.approx(product, rel=1e-4)


def _early(model: Model, stream: Tensor) -> Tensor:
    """Closing norm, pool and readout, as if no layer came behind."""
    logits: Tensor
    if isinstance(model, Seq2Seq):
        (logits,) = model.readout(model.decoder_norm(stream))
        return logits
    assert isinstance(model, Classifier)
    logits = model.readout(model.pool(model.norm(stream)))
    return logits


def _decoder(**more: Any) -> ModelSpec:
    return Seq2SeqModel(encoder_layers=2, decoder_layers=2, **SMALL, **more)


EDITED: dict[str, ModelSpec] = {
    "seq2seq": _decoder(positions=Learned(length=9, scale=1.0)),
    "pruned seq2seq": _decoder(
        positions=Relative(buckets=4, distance=3, scale=1.0),
        norm="post",
        head_counts=(2, 1, 3, 1, 2, 3),
        head_indices=(0, 2, 1, 0, 1, 2, 2, 0, 1, 0, 1, 2),
    ),
    "tokens": TokensModel(layers=2, positions=Rotary(), window=2, log_scale=3, pooling="lowest", **SMALL),
    "vit": VitModel(
        patch=4, layers=2, pooling="cls", positions=GridLearned(scale=1.0), stem="conv", **SMALL
    ),
    "grid": PatchSeq2SeqModel(rows=2, columns=2, patch=4, bridge="cells", encoder_layers=2, **SMALL),
    "patches": PatchAttentionModel(width=12, heads=3, patch=2, projection=True),
}
"""Models whose parts are edited."""


@cache
def edited_twin(name: str) -> Twin:
    """One of ``EDITED``, made once."""
    return make_twin(f"edited {name}", EDITED[name])
