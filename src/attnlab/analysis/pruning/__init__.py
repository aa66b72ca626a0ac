"""Pruning: heads chosen jointly and really removed."""

from attnlab.analysis.pruning.choosing import (
    Elimination,
    Method,
    Repair,
    check_choice,
    eliminate_all,
    load_material,
)
from attnlab.analysis.pruning.elimination import Material, Pruned
from attnlab.analysis.pruning.runs import begin_pruned_run, describe_pruning

__all__ = [
    "Elimination",
    "Material",
    "Method",
    "Pruned",
    "Repair",
    "begin_pruned_run",
    "check_choice",
    "describe_pruning",
    "eliminate_all",
    "load_material",
]
