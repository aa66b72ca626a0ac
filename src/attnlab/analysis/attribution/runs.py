"""Runs of every task, ready to be asked why."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.analysis.asking import ask, expand
from attnlab.analysis.attribution.asking import (
    Asked,
    ask_digit,
    ask_grid,
    ask_list,
    ask_sum,
    empty_pixel,
)
from attnlab.analysis.attribution.judging import judge_question, tell
from attnlab.analysis.attribution.many import explain_many
from attnlab.analysis.attribution.methods import METHODS
from attnlab.analysis.attribution.questions import Patches, Question, Space, Tokens
from attnlab.analysis.attribution.replacing import Background, make_background
from attnlab.analysis.decoding import Progress, silent
from attnlab.analysis.evaluation import Split
from attnlab.analysis.reading import run_reader
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.models import Classifier, Seq2Seq
from attnlab.runs import Run, load_addition, load_sorting
from attnlab.spec import (
    PAD,
    AdditionTask,
    DigitsTask,
    GridsTask,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    SortingTask,
    VitModel,
)
from attnlab.tasks import Examples, Grids, Splits
from attnlab.tasks.digits import scaled

TRAINING = 200
"""Training examples from which replacements are made."""


@dataclass(frozen=True)
class Explained:
    """A run's model; ``read`` makes questions of an input as users write it, ``ask`` of a split's."""

    model: nn.Module
    background: Callable[[nn.Module], Background]
    read: Callable[[str], Asked]
    ask: Callable[[Split, int], Asked]
    splits: Splits


def open_explained(run: Run) -> Explained:
    """The run, whatever its task."""
    match run.spec().task:
        case AdditionTask():
            return _addition(run)
        case SortingTask():
            return _sorting(run)
        case DigitsTask() | GridsTask():
            return _images(run)


def explain_run(
    run: Run, text: str, *, place: str = "", seed: int = 0, progress: Progress = silent
) -> dict[str, Any]:
    """Every method on one input, for one place of the answer or for all of them."""
    opened = open_explained(run)
    asked = opened.read(text)
    chosen = asked.at(place)
    background, told = opened.background(opened.model), []
    for name, (question, sign) in chosen.items():
        judged = judge_question(question, background, seed=seed)
        told.append({"place": name, "answer": sign, **tell(question, judged)})
        progress(len(told), len(chosen))
    return {
        "run": run.name,
        **asked.to_json(),
        "methods": list(METHODS),
        "replacements": told[0]["replacements"],
        "places": told,
    }


def explain_split(
    run: Run,
    count: int,
    *,
    place: str = "",
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Every method on ``count`` inputs of a split, drawn at random; kept in the run.

    Without a ``place`` each input is asked about one of its places, drawn at random too.
    """
    opened = open_explained(run)
    there = len(getattr(opened.splits, split))
    if count > there:
        raise InputError(f"--many is {count:,}, but there are {there:,} {split} inputs")
    chosen = torch.randperm(there, generator=torch.Generator().manual_seed(seed))[:count].tolist()
    chance = random.Random(seed)

    def questions() -> Iterator[Question]:
        for number in chosen:
            asked = opened.ask(split, number).at(place)
            yield asked[place or chance.choice(list(asked))][0]

    found = explain_many(
        questions(), opened.model, opened.background, count=count, seed=seed, progress=progress
    )
    found = {"run": run.name, "split": split, "place": place or None, **found}
    run.keep_analysis(f"explain-{split}", found)
    return found


def _addition(run: Run) -> Explained:
    task, model = load_addition(run)
    require_attention(model)
    pairs = dict(zip(("train", "valid", "test"), task.split_pairs(run.spec().seed), strict=True))
    return Explained(
        model,
        _maker(Tokens("source_embed"), task.examples(pairs["train"][:TRAINING])),
        lambda text: ask_sum(task, model, task.parse(text)),
        lambda split, number: ask_sum(task, model, pairs[split][number]),
        task.splits(run.spec().seed),
    )


def _sorting(run: Run) -> Explained:
    task, model = load_sorting(run)
    require_attention(model)
    splits = task.splits(run.spec().seed)

    def at(split: Split, number: int) -> Asked:
        (row,) = getattr(splits, split)[slice(number, number + 1)].inputs[0]
        return ask_list(task, model, row[row != PAD])

    return Explained(
        model,
        _maker(Tokens("embed", _front(model)), splits.train[slice(0, TRAINING)], padding=PAD),
        lambda text: ask_list(task, model, task.parse(text)),
        at,
        splits,
    )


def _images(run: Run) -> Explained:
    """Digits and grids of digits."""
    spec, reader = run.spec(), run_reader(run)
    task, (member,) = reader.task, reader.members
    model, scale, splits = member.model, member.scale, task.splits(spec.seed)
    require_attention(model)
    assert isinstance(spec.model, PatchAttentionModel | VitModel | PatchSeq2SeqModel)
    patch = spec.model.patch

    def look(name: str, image: Tensor) -> Asked:
        if isinstance(task, Grids) and isinstance(model, Seq2Seq):
            return ask_grid(task, model, name, image, patch=patch, scale=scale)
        return ask_digit(model, name, image, patch=patch, scale=scale)

    def read(text: str) -> Asked:
        found = expand([text])
        if len(found) > 1:
            raise InputError(f"folder {text!r} holds {len(found)} pictures; one at a time is explained")
        (sample,) = ask(reader, found)
        return look(sample.name, scaled(sample.pixels[None], scale)[0])

    def at(split: Split, number: int) -> Asked:
        examples: Examples = getattr(splits, split)[slice(number, number + 1)]
        return look(f"{split}:{number}", examples.inputs[0][0])

    background = _maker(Patches(patch, empty_pixel(scale)), splits.train[slice(0, TRAINING)])
    return Explained(model, background, read, at, splits)


def _front(model: Classifier) -> int:
    """Tokens that stand before a list."""
    numbers = torch.zeros(1, 2, dtype=torch.long)
    return model.embed(numbers).shape[1] - 2


def _maker(
    space: Space, training: Examples, *, padding: int | None = None
) -> Callable[[nn.Module], Background]:
    own = None if padding is None else training.inputs[0] != padding
    return lambda model: make_background(model, space, training, own=own)
