"""The positions of a run, stack by stack, beside those that its training began with."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.analysis.places import StackPlaces
from attnlab.errors import LabError
from attnlab.models import Classifier, Seq2Seq, build_model
from attnlab.models.images import PatchTokens
from attnlab.positions import LearnedTable, Positions
from attnlab.runs import Run, load_model, load_start
from attnlab.spec import (
    AdditionTask,
    BlocksModelSpec,
    DigitsTask,
    GridsTask,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    SortingTask,
    Spec,
    TokensModel,
    VitModel,
    write_variant,
)
from attnlab.tasks import build_task


def run_places(run: Run, which: str = "best") -> list[StackPlaces]:
    """The positions of every stack of a run, with those that its training began with."""
    spec = run.spec()
    trained, first = stacks_of(spec, load_model(run, which)), stacks_of(spec, first_model(run))
    return [
        StackPlaces(name, _word(spec, name), positions, _head_width(spec), _longest(spec)[name], start)
        for (name, positions), start in zip(trained.items(), first.values(), strict=True)
    ]


def first_model(run: Run) -> nn.Module:
    """The model as training found it: fresh weights from the seed, or those that the run names."""
    spec, start = run.spec(), load_start(run)
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = build_model(spec.model, vocabulary=build_task(spec.task).vocabulary)
    if start is not None:
        model.load_state_dict(start)
    return model


def stacks_of(spec: Spec, model: nn.Module) -> dict[str, Positions]:
    """Positions by the name of their stack; the table of an image's patches counts as positions."""
    match model:
        case Seq2Seq():
            return {"source": model.source_positions, "target": model.target_positions}
        case Classifier() if isinstance(model.embed, PatchTokens):
            return {"patches": _table(model.embed.positions)}
        case Classifier():
            return {"tokens": model.positions}
        case _:
            raise LabError(f"a model of kind {spec.model.kind!r} is told no positions")


def _table(vectors: Float[Tensor, "T D"]) -> Positions:
    table = LearnedTable(width=vectors.shape[1], length=len(vectors), scale=0.0)
    table.load_state_dict({"table": vectors})
    return Positions(add=table)


def _word(spec: Spec, stack: str) -> str:
    assert isinstance(spec.model, BlocksModelSpec | PatchAttentionModel)
    if isinstance(spec.model, PatchSeq2SeqModel) and stack == "target":
        return "learned"
    return write_variant(spec.model.positions)


def _head_width(spec: Spec) -> int:
    assert isinstance(spec.model, BlocksModelSpec | PatchAttentionModel)
    return spec.model.width // spec.model.heads


def _longest(spec: Spec) -> dict[str, int]:
    """Tokens of the longest sequence of training, by stack."""
    match spec.task:
        case AdditionTask():
            return {"source": 2 * spec.task.digits + 1, "target": spec.task.digits + 2}
        case SortingTask():
            front = isinstance(spec.model, TokensModel) and spec.model.pooling == "cls"
            return {"tokens": spec.task.high + front}
        case DigitsTask() if isinstance(spec.model, VitModel):
            return {"tokens": spec.model.tokens + spec.model.front}
        case DigitsTask():
            return {"patches": spec.model.tokens if isinstance(spec.model, PatchAttentionModel) else 0}
        case GridsTask():
            assert isinstance(spec.model, PatchSeq2SeqModel)
            return {"source": spec.model.tokens, "target": spec.model.cells}
