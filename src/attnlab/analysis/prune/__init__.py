"""Pruning: heads chosen jointly and really removed."""

from attnlab.analysis.prune.choosing import (
    Elimination,
    check_choice,
    eliminate_all,
    load_material,
)
from attnlab.analysis.prune.elimination import Material, Pruned
from attnlab.analysis.prune.runs import PruningResult, begin_pruned_run, describe_pruning

__all__ = [
    "Elimination",
    "Material",
    "Pruned",
    "PruningResult",
    "begin_pruned_run",
    "check_choice",
    "describe_pruning",
    "eliminate_all",
    "load_material",
]
