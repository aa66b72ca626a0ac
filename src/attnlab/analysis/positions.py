"""What positions tell a model: vectors by place, how alike places are, and how far trained vectors moved.

    add   vectors PE(p); two places are as alike as the cosine of their vectors
    turn  the vector (1, 0, 1, 0, ..) turned, so cosines and sines of the angles; the cosine of two of them
          is what the turn leaves of the product of a query and a key that would be equal without it
    bias  what each head's scores get, by offset from query to key; two places are as alike as the weight
          that a query gives a key by the bias alone: its softmax over keys, mean over heads

A place is known if sequences of training reached it. All is as it stands in evaluation.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.position_kinds import GRIDS
from attnlab.devices import CPU
from attnlab.errors import InputError, LabError, brief
from attnlab.images import has_images
from attnlab.model import Model, attentions
from attnlab.models import build_for
from attnlab.positions import Positions, build_positions
from attnlab.positions.schemes import BucketBias, ColumnPlaces, RandomPlaces, WindowBias
from attnlab.results import Result, Row
from attnlab.runs import RunFolder, load_start
from attnlab.specs import GridPositionSpec, PositionSpec, Spec, Task, require, write_variant

Slot = Literal["add", "turn", "bias"]
LONGEST = 1024
"""Tokens that can be drawn."""


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
        if isinstance(mapping, RandomPlaces):
            return mapping.limit
        if isinstance(mapping, ColumnPlaces) and self.positions.add is not None:
            return mapping.limit  # examples are moved to everywhere
        return self.trained


@dataclass(frozen=True)
class SlotResult:
    """What one slot makes of places; ``rows`` are places, of a bias offsets from query to key."""

    slot: Slot
    rows: list[float] | list[int]
    known_rows: list[bool]
    vectors: list[list[float]]
    alike: list[list[float]]
    known: list[bool]
    neighbours_alike: float | None


@dataclass(frozen=True)
class MovedResult:
    """How far each row of a trained table is from where it started, and how long it was there.

    ``sideways`` is the part across the row's first direction. Weight decay shortens every row, also those
    that training never asked for, but turns none. ``mean`` is over known and unknown rows.
    """

    table: str
    distance: list[float]
    sideways: list[float]
    start_norm: list[float]
    known: list[bool]
    mean: dict[str, dict[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class StackResult(Result):
    """The positions of one stack, for a sequence of ``tokens``."""

    stack: str
    positions: str
    tokens: int
    trained: int
    slots: list[SlotResult]
    moved: list[MovedResult]


@dataclass(frozen=True, kw_only=True)
class PositionsResult(Result):
    """The positions of a run, or of a kind: ``what`` names it."""

    shown_by: ClassVar[str] = "attnlab.tables.positions"

    what: str
    stacks: list[StackResult]

    def records(self) -> list[Row]:
        """A row for each stack, slot and pair of tokens: how alike their places are."""
        return [
            {
                "stack": stack.stack,
                "slot": slot.slot,
                "token": token,
                "other": other,
                "alike": alike,
                "known": slot.known[token] and slot.known[other],
            }
            for stack in self.stacks
            for slot in stack.slots
            for token, row in enumerate(slot.alike)
            for other, alike in enumerate(row)
        ]


def describe_positions(what: str, stacks: list[StackPlaces], *, length: int = 0) -> PositionsResult:
    """All ``stacks`` for a sequence of ``length`` tokens, by default twice as many as in training, of a
    grid as many.
    """
    found = []
    for stack in stacks:
        default = stack.trained if stack.name in ("grid", "patches") else 2 * stack.trained
        tokens = length or min(default, LONGEST)
        require(1 <= tokens <= LONGEST, "length", tokens, f"from 1 to {LONGEST}")
        found.append(describe_stack(stack, tokens))
        if not found[-1].slots:
            raise InputError(f"{brief(what)} has nothing to draw: its positions are {brief(stack.word)}")
    return PositionsResult(what=what, stacks=found)


def describe_stack(stack: StackPlaces, length: int) -> StackResult:
    return StackResult(
        stack=stack.name,
        positions=stack.word,
        tokens=length,
        trained=stack.trained,
        slots=look_at(stack, length),
        moved=movements(stack),
    )


def _mean(values: Tensor) -> float | None:
    return values.mean().item() if len(values) else None


@torch.no_grad()
def look_at(stack: StackPlaces, length: int) -> list[SlotResult]:
    """Every slot that is filled, for a sequence of ``length`` tokens."""
    placed = stack.positions.eval().at(length, torch.empty(1, length))
    where = placed.places[0]
    known, slots = where < stack.reach, list[SlotResult]()

    def fill(slot: Slot, rows: Tensor, known_rows: Tensor, vectors: Tensor, alike: Tensor) -> None:
        slots.append(
            SlotResult(
                slot,
                rows=rows.tolist(),
                known_rows=known_rows.tolist(),
                vectors=vectors.tolist(),
                alike=alike.tolist(),
                known=known.tolist(),
                neighbours_alike=_mean(alike.diagonal(1)),
            )
        )

    if placed.add is not None:
        vectors = placed.add(where).double()
        fill("add", where, known, vectors, cosines(vectors))
    if placed.rotation is not None:
        flat = torch.zeros(1, 1, length, stack.head_width, dtype=torch.float64)
        flat[..., 0::2] = 1
        vectors = placed.rotate(flat)[0, 0]
        fill("turn", where, known, vectors, cosines(vectors))
    bias = placed.score_bias(slice(length), slice(length))
    if bias is not None:
        each = bias[0].double()  # (H, T, S)
        offsets = torch.arange(1 - length, length)
        vectors = torch.cat((each[:, -1], each[:, 0, 1:]), dim=1).T  # of the last query, then of the first
        fill("bias", offsets, offsets.abs() < stack.reach, vectors, each.softmax(dim=-1).mean(dim=0))
    return slots


def cosines(vectors: Float[Tensor, "T C"]) -> Float[Tensor, "T T"]:
    """Cosine of every two vectors; 0 where one has no length."""
    unit = F.normalize(vectors, dim=1)
    return unit @ unit.T


@torch.no_grad()
def movements(stack: StackPlaces) -> list[MovedResult]:
    """Every trained table of the positions, against where it started."""
    if stack.start is None:
        return []
    moved = []
    for name, table in stack.positions.named_parameters():
        start, end = stack.start.get_parameter(name).double(), table.double()
        along = F.normalize(start, dim=1)
        across = end - (end * along).sum(dim=1, keepdim=True) * along
        distance, sideways, known = (end - start).norm(dim=1), across.norm(dim=1), _rows_known(stack, table)
        moved.append(
            MovedResult(
                table=name,
                distance=distance.tolist(),
                sideways=sideways.tolist(),
                start_norm=start.norm(dim=1).tolist(),
                known=known.tolist(),
                mean={
                    size: {"known": _mean(each[known]), "unknown": _mean(each[~known])}
                    for size, each in (("distance", distance), ("sideways", sideways))
                },
            )
        )
    return moved


def _rows_known(stack: StackPlaces, table: Tensor) -> Bool[Tensor, "N"]:
    """Which rows training asked for: places, or buckets of offsets."""
    bias = stack.positions.bias
    if isinstance(bias, WindowBias):
        bias = bias.inner
    if not isinstance(bias, BucketBias):
        return torch.arange(len(table)) < stack.reach
    near = bias.buckets[torch.arange(-bias.distance, bias.distance + 1).abs() < stack.reach]
    return torch.isin(torch.arange(len(table)), near)


def run_places(run: RunFolder, model: Model | None = None) -> list[StackPlaces]:
    """The positions of every stack of a run, or of ``model`` as it was at some step, with those that its
    training began with.
    """
    spec, model = run.spec(), run.on_cpu().model if model is None else deepcopy(model).to(CPU)
    trained, first = stacks_of(spec, model), stacks_of(spec, first_model(run))
    head_width = next((each.head_width for each in attentions(model).values()), 2)  # 2: nothing to turn
    return [
        StackPlaces(
            name,
            spec.model.stack_positions[name],
            positions,
            head_width,
            spec.task.target_length if name == "target" else _longest_input(spec.task, model),
            first[name],
        )
        for name, positions in trained.items()
    ]


def kind_places(
    spec: PositionSpec | GridPositionSpec, *, trained: int, width: int, heads: int, columns: int
) -> StackPlaces:
    """Fresh positions of a kind, as ``check_kind`` gives it."""
    grid, each = spec.kind in GRIDS, width // heads
    side = columns if grid else 0
    positions = build_positions(spec, width=width, head_width=each, rows=side, columns=side)
    name, known = ("grid", columns * columns) if grid else ("any model", trained)
    return StackPlaces(name, write_variant(spec), positions, each, known)


def first_model(run: RunFolder) -> Model:
    """The model as training found it: fresh weights from the seed, or those that the run names."""
    spec, start = run.spec(), load_start(run)
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = build_for(spec)
    if start is not None:
        model.load_state_dict(start)
    return model


def stacks_of(spec: Spec, model: Model) -> dict[str, Positions]:
    found = model.stack_positions()
    if not found:
        raise LabError(f"a model of kind {brief(spec.model.kind)} is told no positions")
    return found


@torch.no_grad()
def _longest_input(task: Task, model: Model) -> int:
    """Tokens that the model makes of the longest input of training."""
    if has_images(task):
        channels, *size = task.image_shape
        blank = torch.zeros(1, *([channels] if channels > 1 else []), *size)
    else:
        blank = torch.zeros(1, task.input_length, dtype=torch.long)
    return int(model.get_submodule(model.input_path or "")(blank).shape[1])
