"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.analysis.choices import Analysis
    from attnlab.analysis.digits import evaluate_digits
    from attnlab.analysis.grids import evaluate_grids
    from attnlab.analysis.keeping import analyse_run
    from attnlab.analysis.seeds import bootstrap_interval, compare_seeds, describe_seeds, holm, sign_flip_p
    from attnlab.analysis.statistics import percent, proportion_interval
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Analysis",
    "analyse_run",
    "bootstrap_interval",
    "compare_seeds",
    "describe_seeds",
    "evaluate_digits",
    "evaluate_grids",
    "holm",
    "percent",
    "proportion_interval",
    "sign_flip_p",
]
