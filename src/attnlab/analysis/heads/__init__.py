"""Where every head looks, measured on many examples."""

from attnlab.analysis.heads.measuring import measure_heads
from attnlab.analysis.heads.sets import KeySets
from attnlab.analysis.heads.summary import (
    METRICS,
    SHAPES,
    HeadsResult,
    describe_heads,
    heads_run,
    kept_heads,
    run_sets,
    strongest,
    weights_of,
)

__all__ = [
    "METRICS",
    "SHAPES",
    "HeadsResult",
    "KeySets",
    "describe_heads",
    "heads_run",
    "kept_heads",
    "measure_heads",
    "run_sets",
    "strongest",
    "weights_of",
]
