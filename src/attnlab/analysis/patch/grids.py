"""Every layer x position x quantity of a model, as grids of sites, and the shares they restore."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch

from attnlab.analysis.patch.runs import Copies, Patching, Site, tap_name
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.results import Interval

Labels = Callable[[str, int], list[str]]
"""Names of a tap's positions, from its name and their number."""

STREAM, ATTENTION_OUT, HEADS = "residual stream", "attention out", "heads"
HEAD_QUANTITIES = ("z", "q", "k", "v", "pattern")
DECIMALS = 4  # of a share that is told: more than its interval lets one know


@final
@dataclass(frozen=True)
class Grid:
    """Sites by row and column; ``quantity`` says what is put in."""

    quantity: str
    rows: list[str]
    columns: list[str]
    sites: list[list[Site]]


@final
@dataclass(frozen=True)
class MeasuredGrid:
    """A grid with the share that each site restores by itself, and its 95% interval over pairs."""

    quantity: str
    rows: list[str]
    columns: list[str]
    share: list[list[float]]
    interval: list[list[Interval]]


def numbered(tap: str, length: int) -> list[str]:
    """Positions by their number."""
    return [str(position) for position in range(length)]


def grids(patching: Patching, labels: Labels = numbered, *, most: int | None = None) -> list[Grid]:
    """All of a model: residual stream and attention outputs by position, heads by quantity, and each
    quantity of every head by position, unless these are more than ``most`` sites. Rows whose positions have
    different names stand in different grids.
    """
    model, seen = patching.model, patching.base.seen
    streams = {
        name.removesuffix(".out").removesuffix("_residual"): Site(name)
        for name in model.streams()
        if name in seen
    }
    paths = [path for path in attentions(model) if tap_name(path, "z") in seen]
    outs = {path: Site(tap_name(path, "out")) for path in paths}
    found = [*_by_position(STREAM, streams, patching, labels)]
    found += _by_position(ATTENTION_OUT, outs, patching, labels)
    heads = {
        quantity: {
            f"{path}.{index}": Site(tap_name(path, quantity), head=index)
            for path in paths
            for index in range(attentions(model)[path].heads)
        }
        for quantity in HEAD_QUANTITIES
    }
    names = list(heads["z"])
    whole = [[heads[quantity][name] for quantity in HEAD_QUANTITIES] for name in names]
    found.append(Grid(HEADS, names, list(HEAD_QUANTITIES), whole))
    single = [
        grid
        for quantity, sites in heads.items()
        for grid in _by_position(quantity, sites, patching, labels)
    ]
    count = sum(len(grid.rows) * len(grid.columns) for grid in single)
    return found + single if most is None or count <= most else found


def measure_grids(
    patching: Patching, chosen: Sequence[Grid], *, progress: Progress = silent
) -> list[MeasuredGrid]:
    """The share that every site of every grid restores by itself."""
    order = {name: place for place, name in enumerate(patching.base.seen)}
    cells = dict.fromkeys(site for grid in chosen for row in grid.sites for site in row)
    ordered = sorted(cells, key=lambda site: order[site.tap])  # neighbours share what is not computed again
    count = patching.copies
    copies = Copies(patching, count)
    values = []
    for start in range(0, len(ordered), count):
        values.append(copies.values([[site] for site in ordered[start : start + count]]))
        progress(min(start + count, len(ordered)), len(ordered))
    restored = (share.rounded(DECIMALS) for share in patching.shares(torch.cat(values)))
    found = dict(zip(ordered, restored, strict=True))
    return [
        MeasuredGrid(
            grid.quantity,
            grid.rows,
            grid.columns,
            [[found[site].value for site in row] for row in grid.sites],
            [[found[site].interval for site in row] for row in grid.sites],
        )
        for grid in chosen
    ]


def _by_position(quantity: str, rows: dict[str, Site], patching: Patching, labels: Labels) -> list[Grid]:
    groups: dict[tuple[str, ...], dict[str, Site]] = {}
    for name, site in rows.items():
        length = patching.base.seen[site.tap].shape[1 if site.head is None else 2]
        groups.setdefault(tuple(labels(site.tap, length)), {})[name] = site
    return [
        Grid(
            quantity,
            list(group),
            list(columns),
            [
                [Site(site.tap, site.head, position) for position in range(len(columns))]
                for site in group.values()
            ],
        )
        for columns, group in groups.items()
    ]
