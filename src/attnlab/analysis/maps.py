"""Maps of attention over images: one weight for each patch, and how even they are.

With A a head's pattern and S its keys, the last of which are patches, a map over patches is

    received   mean over all queries t of A[t, s]
    sent       A[q, s] of one patch q
    cls        A[0, s] of the token in front
    digits     A[t, s] of cross attention, for each digit t that is said; the keys may be cells
    rollout    of the token in front, else the mean over tokens, or for each digit that is said

for each head, for the mean of all heads, or for the highest A[t, s] among them. What rollout leaves to
tokens that are no patches is the residual sums' own, so its maps are shares of what patches get.

With p the weights as shares of what all patches get together, the entropy - sum p ln p is at most ln n for
n patches, which an even map has. Of one patch both are 0: its map is as even as it is sharp, so that no
share of the maximum can be told.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import check_heads
from attnlab.analysis.choices import MapHeads, MapView
from attnlab.analysis.image_classifier import HEADLESS, ImageClassifier, image_classifier
from attnlab.analysis.rollout import rollout
from attnlab.analysis.samples import Sample
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError, brief
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.models.images import cut_patches, patch_grid
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.taps import record


@dataclass(frozen=True, kw_only=True)
class MapNumbers:
    """How even a map is; ``peak`` is a multiple of uniform attention.

    ``front`` is the weight on keys that are no patches. ``entropy_of_rows`` is the mean entropy of the
    queries' own rows over its maximum, where a map is a mean over queries of several keys: each of them may
    look at one patch although together they look everywhere. ``query`` is the patch that looks, if it is
    one, as row and column. ``on_digit`` is the share of what patches get that goes to the digit that is
    being said, where there are several.
    """

    map: str
    of: str
    entropy: float
    most_entropy: float
    evenness: float | None
    entropy_of_rows: float | None
    peak: float
    peak_at: tuple[int, int]
    front: float
    query: tuple[int, int] | None
    on_digit: float | None


@dataclass(frozen=True, kw_only=True)
class PatchMap(MapNumbers, Result):
    """With what every patch gets, as multiples of uniform attention."""

    weights: list[list[float]]


def patch_map(
    name: str,
    of: str,
    weights: Float[Tensor, "S"],
    grid: tuple[int, int],
    *,
    rows: float | None = None,
    query: tuple[int, int] | None = None,
    cells: tuple[int, int] = (1, 1),
    place: int = 0,
) -> PatchMap:
    """The map of what all keys get, the last of which are the patches of a ``grid``.

    ``place`` is that of the digit that is being said, in rows and columns of ``cells``. The entropy is 0
    also where no patch gets anything; one patch has no evenness.
    """
    front, patches = torch.split(weights, [len(weights) - math.prod(grid), math.prod(grid)])
    total, most, multiples = patches.sum(), math.log(len(patches)), patches.view(grid) * len(weights)
    own = entropy(patches / total).item() if total > 0 else 0.0
    return PatchMap(
        map=name,
        of=of,
        entropy=own,
        most_entropy=most,
        evenness=own / most if most else None,
        entropy_of_rows=rows,
        peak=multiples.max().item(),
        peak_at=divmod(int(patches.argmax()), grid[1]),
        front=front.sum().item(),
        query=query,
        on_digit=share_of_cell(patches.view(grid), *cells, place),
        weights=multiples.tolist(),
    )


def share_of_cell(weights: Float[Tensor, "Y X"], rows: int, columns: int, place: int) -> float | None:
    """What part of all weight goes to one of ``rows`` x ``columns`` cells, counted row by row.

    None where there is one cell, which gets all, or where a patch lies in two of them.
    """
    high, wide = weights.shape
    if rows * columns == 1 or high % rows or wide % columns:
        return None
    cells = weights.reshape(rows, high // rows, columns, wide // columns).sum(dim=(1, 3)).flatten()
    return (cells[place] / cells.sum()).item()


def entropy(shares: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    """- sum over s of p ln p, in nats, with 0 ln 0 = 0; never below 0 by rounding, and never -0."""
    total = shares.double().xlogy(shares.double()).sum(dim=-1)
    return (0.0 - total).clamp(min=0.0)


def patch_place(text: str, rows: int, columns: int) -> tuple[int, int] | None:
    """Row and column, counted from 0, that ``3,2`` names; None if there is no such patch."""
    match = re.fullmatch(r"([0-9]{1,4})\s*,\s*([0-9]{1,4})", text.strip())
    if match is None or int(match[1]) >= rows or int(match[2]) >= columns:
        return None
    return int(match[1]), int(match[2])


@dataclass(frozen=True)
class Watched:
    """The image as the model got it, patterns by the path of their attention, what it said in words, and
    the rows and columns of cells that this stands in.
    """

    model: Model
    image: Float[Tensor, "*C Y X"]
    patterns: dict[str, Float[Tensor, "1 H T S"]]
    said: list[str]
    cells: tuple[int, int]

    def looking(self, kind: Literal["self", "cross"]) -> list[str]:
        """Attentions whose keys come from the image: of the encoder itself, or of the decoder to it."""
        sites = [site for site in self.model.sites() if site.path in self.patterns]
        return [site.path for site in sites if site.kind == kind and site.keys == "input"]

    def grid(self, keys: int) -> tuple[int, int]:
        """Rows and columns of the patches, or cells, among so many keys."""
        return patch_grid(self.image.shape[-2:], keys)

    @property
    def front(self) -> int:
        """Tokens in front of the patches."""
        sizes = [self.patterns[path].shape[-1] for path in self.looking("self")]
        return sizes[0] - math.prod(self.grid(sizes[0])) if sizes else 0


@torch.inference_mode()
def watch(reader: ImageClassifier, sample: Sample) -> Watched:
    """Look at the one model of ``reader`` while it says what it reads in ``sample``."""
    (member,) = reader.members
    task, image = reader.task, member.scaled(sample.pixels[None])
    before = [task.start, *sample.answer[:-1]]
    fed = [] if task.start is None else [torch.tensor([before], device=image.device)]
    with record(member.model, "*.pattern") as seen:
        member.model(image, *fed)
    found = {path: seen[f"{path}.pattern"].cpu() for path in attentions(member.model)}
    names = [task.classes[number] for number in sample.answer]
    said = [f"{task.shows} {place}: {name}" for place, name in enumerate(names, 1)]
    return Watched(member.model, image[0].cpu(), found, said, (task.rows, task.columns))


def maps_reader(run: RunFolder) -> ImageClassifier:
    """The model of ``run``; runs that read text and models without heads are refused."""
    task = run.spec().task
    if not task.images:
        raise InputError(
            f"run {run.name} reads text (task {task.kind}), so there is no image to draw a map over; "
            "use patterns instead"
        )
    reader = image_classifier(run)
    require_attention(reader.members[0].model, instead=HEADLESS)
    return reader


def default_view(watched: Watched) -> MapView:
    """Digits of an encoder-decoder, the token in front if there is one, else what patches receive.

    Where pruning left no cross attention, digits have no maps and what patches receive may have some.
    """
    if watched.model.decodes:
        return "received" if watched.looking("self") and not watched.looking("cross") else "digits"
    return "cls" if watched.front else "received"


def maps_of(
    watched: Watched,
    view: MapView,
    *,
    heads: MapHeads = "each",
    layer: int | None = None,
    head: str = "",
    patch: str = "",
) -> list[list[PatchMap]]:
    """Rows of maps: a row for each attention, or in the view digits for each head.

    ``patch`` is the row and the column of the patch that sends, such as 3,2; else the one with most ink.
    """
    check_heads(watched.model, [head] if head else [])
    if view == "rollout":
        return [_rollout(watched)]
    chosen = _chosen(watched, view, layer, head)
    rows = [list(_headed(path, watched.patterns[path][0], heads, head)) for path in chosen]
    match view:
        case "digits":
            return [_said_in_turn(watched, name, watched.said, a) for row in rows for name, a in row]
        case "received":
            return [[_received(watched, name, a) for name, a in row] for row in rows]
        case "cls":
            return [
                [patch_map(name, "cls", a[0], watched.grid(a.shape[1])) for name, a in row] for row in rows
            ]
        case "sent":
            return [[_sent(watched, name, a, patch) for name, a in row] for row in rows]


def _chosen(watched: Watched, view: MapView, layer: int | None, head: str) -> list[str]:
    """Attentions that have a map in this view; a refusal names what does have maps."""
    own, cross = watched.looking("self"), watched.looking("cross")
    instead = "use patterns: no head that is left looks at the image"
    if own or cross:
        instead = f"use view {'received' if own else 'digits'}"
    known, lost = (cross, "the decoder's cross attention") if view == "digits" else (own, "the encoder")
    if view == "digits" and not watched.model.decodes:
        raise InputError(
            "view is digits, which needs a decoder that says one digit after the other; this model has "
            "none, so use received or rollout"
        )
    if view == "cls" and not watched.front:
        raise InputError(
            f"view is cls, which needs a token in front of the patches; this model has none, so {instead}"
        )
    if head:
        path = head.rpartition(".")[0]
        if path in known or (path in cross and view == "received"):
            return [path]
        why = "; use digits or received for cross attention, and any other view for the encoder"
        if path not in (*own, *cross):
            why = ": it looks at digits that were said, not at the image, so use patterns"
        raise InputError(f"head is {head}, which has no map in the view {view}{why}")
    if not known:
        raise InputError(f"there is no map in the view {view}: {lost} has no head left, so {instead}")
    found = [path for path in known if layer is None or path.split(".")[1] == str(layer)]
    if not found:
        layers = ", ".join(sorted({path.split(".")[1] for path in known}, key=int))
        raise InputError(f"layer is {layer}; layers with a map in the view {view}: {layers}")
    return found


def _headed(
    path: str, pattern: Float[Tensor, "H T S"], heads: MapHeads, head: str
) -> Iterator[tuple[str, Float[Tensor, "T S"]]]:
    """Patterns with names: of one head, of each, or of all together."""
    if head:
        yield head, pattern[int(head.rpartition(".")[2])]
    elif heads == "mean":
        yield f"{path}, mean", pattern.mean(dim=0)
    elif heads == "max":
        yield f"{path}, max", pattern.amax(dim=0)
    else:
        for index, each in enumerate(pattern):
            yield f"{path}.{index}", each


def _received(watched: Watched, name: str, pattern: Float[Tensor, "T S"]) -> PatchMap:
    own = pattern / pattern.sum(dim=1, keepdim=True)  # the highest of all heads sums to more than 1
    keys = pattern.shape[1]
    evenness = entropy(own).mean().item() / math.log(keys) if keys > 1 else None
    return patch_map(name, "received", pattern.mean(dim=0), watched.grid(keys), rows=evenness)


def _sent(watched: Watched, name: str, pattern: Float[Tensor, "T S"], patch: str) -> PatchMap:
    rows, columns = watched.grid(pattern.shape[1])
    ink = cut_patches(watched.image[None], watched.image.shape[-2] // rows)[0].sum(dim=1)
    place = patch_place(patch, rows, columns) if patch else divmod(int(ink.argmax()), columns)
    if place is None:
        raise InputError(
            f"patch is {brief(patch)}; it must be a row and a column, from 0,0 to {rows - 1},{columns - 1}"
        )
    row, column = place
    sent = pattern[pattern.shape[0] - rows * columns + row * columns + column]
    return patch_map(name, f"sent from {row},{column}", sent, (rows, columns), query=(row, column))


def _rollout(watched: Watched) -> list[PatchMap]:
    shares, words = rollout(watched.model, watched.patterns)[0], watched.said
    if not watched.model.decodes:
        shares = shares[:1] if watched.front else shares.mean(dim=0, keepdim=True)
        words = ["cls" if watched.front else "mean over tokens"]
    patches = shares[:, shares.shape[1] - math.prod(watched.grid(shares.shape[1])) :]
    return _said_in_turn(watched, "rollout", words, patches / patches.sum(dim=1, keepdim=True))


def _said_in_turn(
    watched: Watched, name: str, words: list[str], rows: Float[Tensor, "T S"]
) -> list[PatchMap]:
    """A map for each digit that is said."""
    grid = watched.grid(rows.shape[1])
    return [
        patch_map(name, of, row, grid, cells=watched.cells, place=place)
        for place, (of, row) in enumerate(zip(words, rows, strict=False))
    ]
