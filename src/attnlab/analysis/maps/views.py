"""The maps of an image, view by view.

With A a head's pattern and S its keys, the last of which are patches, a map over patches is

    received   mean over all queries t of A[t, s]
    sent       A[q, s] of one patch q
    cls        A[0, s] of the token in front
    digits     A[t, s] of cross attention, for each digit t that is said; the keys may be cells
    rollout    of the token in front, else the mean over tokens, or for each digit that is said

for each head, for the mean of all heads, or for the highest A[t, s] among them. What rollout leaves to
tokens that are no patches is the residual sums' own, so its maps are shares of what patches get.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.masks import check_heads
from attnlab.analysis.choices import MapHeads, MapView
from attnlab.analysis.maps.patch_map import PatchMap, entropy, share_of_cell
from attnlab.analysis.maps.places import patch_place
from attnlab.analysis.maps.watching import Watched
from attnlab.analysis.rollout import rolled_out
from attnlab.errors import InputError
from attnlab.models.images import cut_patches


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
    _check_view(watched, view)
    if view == "rollout":
        return [_rollout(watched)]
    chosen = _chosen(watched, view, layer, head)
    rows = [list(_headed(path, watched.patterns[path][0], heads, head)) for path in chosen]
    match view:
        case "digits":
            return [_digits(watched, *each) for row in rows for each in row]
        case "received":
            return [[_received(watched, *each) for each in row] for row in rows]
        case "cls":
            return [[_of_row(watched, name, "cls", a[0]) for name, a in row] for row in rows]
        case "sent":
            return [[_sent(watched, name, a, patch) for name, a in row] for row in rows]


def _check_view(watched: Watched, view: MapView) -> None:
    if view == "digits" and not watched.model.decodes:
        raise InputError(
            "--view is digits, which needs a decoder that says one digit after the other; this model has "
            "none, so use received or rollout"
        )
    if view == "cls" and not watched.front:
        raise InputError(
            "--view is cls, which needs a token in front of the patches; this model has none, so "
            f"{_instead(watched)}"
        )


def _instead(watched: Watched) -> str:
    """What does have maps, as the end of a refusal."""
    if watched.looking("self"):
        return "use --view received"
    if watched.looking("cross"):
        return "use --view digits"
    return "use 'attnlab patterns': no head that is left looks at the image"


def _chosen(watched: Watched, view: MapView, layer: int | None, head: str) -> list[str]:
    """Paths of the attentions to draw."""
    known = watched.looking("cross" if view == "digits" else "self")
    if head:
        path = head.rpartition(".")[0]
        crossing = path in watched.looking("cross")
        if path not in known and not (crossing and view == "received"):
            raise InputError(
                f"--head is {head}, which has no map in the view {view}{_other(watched, path)}"
            )
        return [path]
    if not known:
        lost = "the decoder's cross attention" if view == "digits" else "the encoder"
        raise InputError(
            f"there is no map in the view {view}: {lost} has no head left, so {_instead(watched)}"
        )
    if layer is None:
        return known
    found = [path for path in known if path.split(".")[1] == str(layer)]
    if not found:
        layers = ", ".join(sorted({path.split(".")[1] for path in known}, key=int))
        raise InputError(f"--layer is {layer}; layers with a map in the view {view}: {layers}")
    return found


def _other(watched: Watched, path: str) -> str:
    if path not in (*watched.looking("self"), *watched.looking("cross")):
        return ": it looks at digits that were said, not at the image, so use 'attnlab patterns'"
    return "; use digits or received for cross attention, and any other view for the encoder"


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
    return _of_row(watched, name, "received", pattern.mean(dim=0), rows=evenness)


def _sent(watched: Watched, name: str, pattern: Float[Tensor, "T S"], patch: str) -> PatchMap:
    rows, columns = watched.grid(pattern.shape[1])
    row, column = _place(patch, rows, columns) if patch else _inkiest(watched, rows, columns)
    sent = pattern[pattern.shape[0] - rows * columns + row * columns + column]
    return _of_row(watched, name, f"sent from {row},{column}", sent, query=(row, column))


def _digits(watched: Watched, name: str, pattern: Float[Tensor, "T S"]) -> list[PatchMap]:
    maps = [
        _of_row(watched, name, _said(place, digit), pattern[place])
        for place, digit in enumerate(watched.said)
    ]
    return _with_shares(watched, maps)


def _with_shares(watched: Watched, maps: list[PatchMap]) -> list[PatchMap]:
    """Maps of all digits, in the order in which they are said, each with the share that is its digit's."""
    return [
        replace(each, on_digit=share_of_cell(each.weights, *watched.cells, place))
        for place, each in enumerate(maps)
    ]


def _said(place: int, digit: int) -> str:
    return f"digit {place + 1}: {digit}"


def _rollout(watched: Watched) -> list[PatchMap]:
    shares = rolled_out(watched.model, watched.patterns)[0]
    if watched.model.decodes:
        words = [_said(place, digit) for place, digit in enumerate(watched.said)]
    else:
        shares = shares[:1] if watched.front else shares.mean(dim=0, keepdim=True)
        words = ["cls" if watched.front else "mean over tokens"]
    rows, columns = watched.grid(shares.shape[1])
    patches = shares[:, shares.shape[1] - rows * columns :]
    patches = patches / patches.sum(dim=1, keepdim=True)
    maps = [
        PatchMap("rollout", of, row.view(rows, columns), row.numel())
        for of, row in zip(words, patches, strict=True)
    ]
    return _with_shares(watched, maps)


def _of_row(
    watched: Watched,
    name: str,
    of: str,
    weights: Float[Tensor, "S"],
    *,
    rows: float | None = None,
    query: tuple[int, int] | None = None,
) -> PatchMap:
    high, wide = watched.grid(len(weights))
    front = weights[: len(weights) - high * wide].sum().item()
    patches = weights[len(weights) - high * wide :].view(high, wide)
    return PatchMap(name, of, patches, len(weights), front, rows, query)


def _place(text: str, rows: int, columns: int) -> tuple[int, int]:
    place = patch_place(text, rows, columns)
    if place is None:
        raise InputError(
            f"--patch is {text!r}; it must be a row and a column, from 0,0 to {rows - 1},{columns - 1}"
        )
    return place


def _inkiest(watched: Watched, rows: int, columns: int) -> tuple[int, int]:
    side = watched.image.shape[-2] // rows
    ink = cut_patches(watched.image[None], side)[0].sum(dim=1)
    return divmod(int(torch.argmax(ink)), columns)
