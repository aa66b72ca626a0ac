"""What positions tell a model: vectors by place, how alike places are, and how far trained vectors moved.

    add   vectors PE(p); two places are as alike as the cosine of their vectors
    turn  the vector (1, 0, 1, 0, ..) turned, so cosines and sines of the angles; the cosine of two of them
          is what the turn leaves of the product of a query and a key that would be equal without it
    bias  what each head's scores get, by offset from query to key; two places are as alike as the weight
          that a query gives a key by the bias alone: its softmax over keys, mean over heads

A place is known if sequences of training reached it. All is as it stands in evaluation.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Real
from torch import Tensor

from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq, build_for
from attnlab.models.images import PatchTokens
from attnlab.positions import BucketBias, LearnedTable, Placed, Positions, RandomPlaces
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

Slot = Literal["add", "turn", "bias"]


@dataclass(frozen=True)
class StackPlaces:
    """The positions of one stack. ``trained`` is how many tokens the longest sequence of training had."""

    name: str
    word: str
    positions: Positions
    head_width: int
    trained: int
    start: Positions | None = None
    """The same positions before training, if they were trained."""

    @property
    def reach(self) -> int:
        """Places that training asked for: 0 to ``reach - 1``."""
        mapping = self.positions.mapping
        return mapping.limit if isinstance(mapping, RandomPlaces) else self.trained


@dataclass(frozen=True)
class Look:
    """What one slot makes of places; ``rows`` are places, of a bias offsets from query to key."""

    slot: Slot
    rows: Real[Tensor, "N"]
    vectors: Float[Tensor, "N C"]
    known_rows: Bool[Tensor, "N"]
    alike: Float[Tensor, "T T"]
    known: Bool[Tensor, "T"]


@dataclass(frozen=True)
class Moved:
    """How far each row of a trained table is from where it started, and how long it was there.

    ``sideways`` is the part across the row's first direction. Weight decay shortens every row, also those
    that training never asked for, but turns none.
    """

    table: str
    distance: Float[Tensor, "N"]
    sideways: Float[Tensor, "N"]
    start_norm: Float[Tensor, "N"]
    known: Bool[Tensor, "N"]


@torch.no_grad()
def look_at(stack: StackPlaces, length: int) -> list[Look]:
    """Every slot that is filled, for a sequence of ``length`` tokens."""
    like = torch.empty(1, length)
    placed = stack.positions.eval().at(length, like)
    where = placed.places[0]
    known = where < stack.reach
    looks = []
    if placed.add is not None:
        vectors = placed.add(where).double()
        looks.append(Look("add", where, vectors, known, cosines(vectors), known))
    if placed.turn is not None:
        flat = torch.zeros(1, 1, length, stack.head_width, dtype=torch.float64)
        flat[..., 0::2] = 1
        vectors = placed.turned(flat)[0, 0]
        looks.append(Look("turn", where, vectors, known, cosines(vectors), known))
    if placed.bias is not None:
        looks.append(_bias_look(placed, length, known, stack.reach))
    return looks


def _bias_look(placed: Placed, length: int, known: Tensor, reach: int) -> Look:
    """Offsets of both signs, from the last place to the first."""
    bias = placed.score_bias(slice(length), slice(length))
    assert bias is not None
    bias = bias[0].double()  # (H, T, S)
    first, last = bias[:, -1, :], bias[:, 0, 1:]  # keys before the last query, keys after the first
    offsets = torch.arange(1 - length, length)
    vectors = torch.cat((first, last), dim=1).T
    return Look("bias", offsets, vectors, offsets.abs() < reach, bias.softmax(dim=-1).mean(dim=0), known)


def cosines(vectors: Float[Tensor, "T C"]) -> Float[Tensor, "T T"]:
    """Cosine of every two vectors; 0 where one has no length."""
    unit = F.normalize(vectors, dim=1)
    return unit @ unit.T


@torch.no_grad()
def movements(stack: StackPlaces) -> list[Moved]:
    """Every trained table of the positions, against where it started."""
    if stack.start is None:
        return []
    before = dict(stack.start.named_parameters())
    return [
        _moved(name, before[name], table, _rows_known(stack, table))
        for name, table in stack.positions.named_parameters()
    ]


def _moved(name: str, start: Tensor, end: Tensor, known: Tensor) -> Moved:
    start, end = start.double(), end.double()
    along = F.normalize(start, dim=1)
    sideways = end - (end * along).sum(dim=1, keepdim=True) * along
    return Moved(name, (end - start).norm(dim=1), sideways.norm(dim=1), start.norm(dim=1), known)


def _rows_known(stack: StackPlaces, table: Tensor) -> Bool[Tensor, "N"]:
    """Which rows training asked for: places, or buckets of offsets."""
    bias = stack.positions.bias
    if not isinstance(bias, BucketBias):
        return torch.arange(len(table)) < stack.reach
    near = bias.buckets[torch.arange(-bias.distance, bias.distance + 1).abs() < stack.reach]
    return torch.isin(torch.arange(len(table)), near)


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
    _, height, width = task.cell_shape or (0, 0, 0)
    match model:
        case PatchSeq2SeqModel():
            return {"source": model.tokens(height, width), "target": model.cells}
        case VitModel():
            return {"tokens": model.tokens(height, width) + model.front}
        case PatchAttentionModel():
            return {"patches": model.tokens(height, width)}
        case TokensModel():
            return {"tokens": task.input_length + (model.pooling == "cls")}
        case _:
            return {"source": task.input_length, "target": task.target_length}
