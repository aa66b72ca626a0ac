"""Heads matched across seeds: what the heads of each group do on average."""

from typing import Any

from attnlab.analysis.matched import MatchedKind
from attnlab.analysis.matching.roles import weight
from attnlab.studies.outcome import HeadsAcrossSeeds

_LOOKS = {
    "own\ncolumn": "column",
    "below,\ncarry": "carry_in",
    "below,\nnone": "no_carry_in",
    "other\noperand": "partner",
    "own\ntoken": "diagonal",
    "token\nbefore": "previous",
    "+": "operator",
}


def matched_data(variant: HeadsAcrossSeeds) -> dict[str, Any]:
    """A panel for each kind of attention of a variant, a row for each group, in percent.

    A row goes by the names of its heads, one a seed. Columns: weight on sets of keys, answers lost without
    the head, and the share of a carry that it brings to each column.
    """
    return {
        "title": f"Heads of {len(variant.seeds)} seeds, matched by what they do: means",
        "label": "weight, answers lost, share of a carry, in %",
        "panels": [[_panel(kind)] for kind in variant.kinds],
    }


def _panel(kind: MatchedKind) -> dict[str, Any]:
    groups = sorted(kind.groups, key=lambda group: -max(group.carries.values(), default=0.0))
    known = {name.split(" at ")[0] for group in groups for name in group.looks}
    looks = {label: metric for label, metric in _LOOKS.items() if metric in known}
    carries = list(groups[0].carries)
    return {
        "title": kind.kind,
        "rows": [" ".join(map(_short, group.heads)) for group in groups],
        "columns": [*looks, "lost", *(f"carry {column}" for column in carries)],
        "percent": [
            [
                100 * value
                for value in (
                    *(weight(group.looks, metric) for metric in looks.values()),
                    next(iter(group.costs.values())),
                    *(group.carries[column] for column in carries),
                )
            ]
            for group in groups
        ],
    }


def _short(head: str) -> str:
    """Layer and index: ``1.3`` of ``decoder.1.cross.3``."""
    _, layer, _, index = head.split(".")
    return f"{layer}.{index}"
