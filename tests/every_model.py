"""Every kind of model with every kind of position and pooling that specs can name, as small as they get."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from attnlab.model import Model
from attnlab.models import build_model
from attnlab.specs import (
    CNNModel,
    Columns,
    Coupled,
    GridLearned,
    Interpolated,
    Learned,
    MLPModel,
    ModelSpec,
    PatchAttentionModel,
    PatchPositionSpec,
    PatchSeq2SeqModel,
    Pooling,
    PositionSpec,
    Randomised,
    Relative,
    Seq2SeqModel,
    Tokens,
    TokensModel,
    VitModel,
    variants,
    write_variant,
)
from attnlab.specs.positions import StartSpec

VOCABULARY = 11
IMAGE = (1, 8, 12)
WORDS = Tokens(count=13, padding=12, front=11)
COLUMNS = Columns(breaks=(2, 5), lead=1)
ROWS, LENGTH, ANSWER = 3, 7, 5
SMALL: dict[str, Any] = {"width": 12, "heads": 3, "hidden": 5, "dropout": 0.1}


@dataclass(frozen=True)
class Case:
    name: str
    spec: ModelSpec

    @property
    def decodes(self) -> bool:
        return isinstance(self.spec, Seq2SeqModel | PatchSeq2SeqModel)

    def build(self) -> Model:
        two = isinstance(self.spec, TokensModel) and self.spec.pooling == "lowest"
        vocabulary = 2 if two else VOCABULARY
        torch.manual_seed(0)
        return build_model(self.spec, vocabulary=vocabulary, tokens=WORDS, image=IMAGE, columns=COLUMNS)

    def inputs(self) -> tuple[Tensor, ...]:
        """With padding where there are tokens."""
        chance = torch.Generator().manual_seed(1)
        given: Tensor
        if isinstance(self.spec, Seq2SeqModel | TokensModel):
            given = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=chance)
            given[0, -2:], given[1, -1:] = WORDS.padding, WORDS.padding
        else:
            _, high, wide = IMAGE
            many = self.spec.columns if isinstance(self.spec, PatchSeq2SeqModel) else 1
            given = torch.rand(ROWS, high, wide * many, generator=chance)
        fed = torch.randint(VOCABULARY, (ROWS, ANSWER), generator=chance)
        return (given, fed) if self.decodes else (given,)

    @property
    def logits(self) -> tuple[int, ...]:
        two = isinstance(self.spec, TokensModel) and self.spec.pooling == "lowest"
        return (ROWS, ANSWER, VOCABULARY) if self.decodes else (ROWS, 2 if two else VOCABULARY)


def token_positions() -> Iterator[PositionSpec]:
    for kind in variants(PositionSpec).values():
        if kind not in (Learned, Relative, Randomised, Interpolated, Coupled):
            yield kind()
    yield from (Learned(length=5), Relative(buckets=4, distance=3))
    yield from (Randomised(inner=inner, limit=19) for inner in ("sinusoidal", "learned", "rotary"))
    yield from (Interpolated(inner=inner, trained=3) for inner in ("sinusoidal", "rotary"))


def every_spec() -> Iterator[ModelSpec]:
    for positions in token_positions():
        for pooling in get_args(Pooling):
            yield TokensModel(layers=1, positions=positions, pooling=pooling, **SMALL)
        yield TokensModel(layers=2, positions=positions, window=2, log_scale=4, readout="mlp", **SMALL)
        if not isinstance(positions, Randomised | Interpolated):
            yield Seq2SeqModel(encoder_layers=1, decoder_layers=2, positions=positions, **SMALL)
    coupled: dict[str, Any] = {"limit": 19, "buckets": 4, "distance": 3}
    for inner in ("learned", "sinusoidal", "rotary", "relative"):
        positions = Coupled(inner=inner, window=2 if inner == "relative" else 0, **coupled)
        yield Seq2SeqModel(encoder_layers=1, decoder_layers=2, positions=positions, log_scale=3, **SMALL)
    yield TokensModel(layers=1, positions=Coupled(window=1, **coupled), pooling="cls", **SMALL)
    for kind in variants(PatchPositionSpec).values():
        yield VitModel(patch=4, layers=1, positions=kind(), pooling="cls", **SMALL)
        grid: dict[str, Any] = {"rows": 1, "columns": 2, "patch": 4, "encoder_layers": 1}
        yield PatchSeq2SeqModel(positions=kind(), bridge="cells", **grid, **SMALL)
    for pooling in get_args(Pooling):
        if pooling != "lowest":
            yield VitModel(
                patch=4, layers=1, positions=GridLearned(), pooling=pooling, stem="conv", **SMALL
            )
    for start in variants(StartSpec).values():
        yield PatchAttentionModel(width=12, hidden=5, patch=4, positions=start())
    yield PatchAttentionModel(width=12, heads=3, patch=4, projection=True, residual=True, norm=True)
    pruned: dict[str, Any] = {"head_counts": (2, 0, 3, 1, 0), "head_indices": (0, 2, 0, 1, 2, 1)}
    for positions in (Relative(buckets=4, distance=3), Learned(length=5)):
        own = pruned if isinstance(positions, Relative) else {"head_counts": pruned["head_counts"]}
        yield Seq2SeqModel(
            encoder_layers=1, decoder_layers=2, positions=positions, norm="post", **own, **SMALL
        )
    yield from (MLPModel(hidden=5), CNNModel(filters=3))


def _name(spec: ModelSpec) -> str:
    words = [spec.kind, *([] if isinstance(spec, MLPModel | CNNModel) else [write_variant(spec.positions)])]
    words += [str(getattr(spec, name)) for name in ("pooling", "bridge", "norm") if hasattr(spec, name)]
    return " ".join(words)


CASES = [Case(f"{number} {_name(spec)}", spec) for number, spec in enumerate(every_spec())]
