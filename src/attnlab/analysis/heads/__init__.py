"""Where every head looks, measured on many examples."""

from attnlab.analysis.heads.measuring import measure_heads
from attnlab.analysis.heads.sets import KeySets, addition_sets
from attnlab.analysis.heads.summary import (
    METRICS,
    SHAPES,
    describe_heads,
    heads_run,
    kept_heads,
    strongest,
    task_sets,
)

__all__ = [
    "METRICS",
    "SHAPES",
    "KeySets",
    "addition_sets",
    "describe_heads",
    "heads_run",
    "kept_heads",
    "measure_heads",
    "strongest",
    "task_sets",
]
