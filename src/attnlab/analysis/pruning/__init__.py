"""Pruning: heads chosen jointly and really removed."""

from attnlab.analysis.pruning.choosing import (
    Elimination,
    check_choice,
    eliminate_all,
    load_material,
)
from attnlab.analysis.pruning.elimination import Material, Pruned
from attnlab.analysis.pruning.runs import begin_pruned_run, describe_pruning

__all__ = [
    "Elimination",
    "Material",
    "Pruned",
    "begin_pruned_run",
    "check_choice",
    "describe_pruning",
    "eliminate_all",
    "load_material",
]
