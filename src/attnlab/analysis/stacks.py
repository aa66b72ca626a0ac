"""The positions of a run, stack by stack, beside those that its training began with."""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.places import StackPlaces
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq, build_for
from attnlab.models.images import PatchTokens
from attnlab.positions import LearnedTable, Positions
from attnlab.runs import Run, load_model, load_start
from attnlab.spec import (
    BlocksModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Spec,
    TokensModel,
    VitModel,
    write_variant,
)


def run_places(run: Run, which: str = "best") -> list[StackPlaces]:
    """The positions of every stack of a run, with those that its training began with."""
    spec = run.spec()
    trained, first = stacks_of(spec, load_model(run, which)), stacks_of(spec, first_model(run))
    return [
        StackPlaces(name, _word(spec, name), positions, _head_width(spec), _longest(spec)[name], start)
        for (name, positions), start in zip(trained.items(), first.values(), strict=True)
    ]


def first_model(run: Run) -> Model:
    """The model as training found it: fresh weights from the seed, or those that the run names."""
    spec, start = run.spec(), load_start(run)
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = build_for(spec)
    if start is not None:
        model.load_state_dict(start)
    return model


def stacks_of(spec: Spec, model: Model) -> dict[str, Positions]:
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
    task, model = spec.task, spec.model
    match model:
        case PatchSeq2SeqModel():
            return {"source": model.tokens, "target": model.cells}
        case VitModel():
            return {"tokens": model.tokens + model.front}
        case PatchAttentionModel():
            return {"patches": model.tokens}
        case TokensModel():
            return {"tokens": task.input_length + (model.pooling == "cls")}
        case _:
            return {"source": task.input_length, "target": task.target_length}
