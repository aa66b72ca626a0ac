"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.analysis.analyses import analyse_run
    from attnlab.analysis.choices import Analysis
    from attnlab.analysis.statistics import (
        bootstrap_interval,
        compare_seeds,
        describe_seeds,
        holm,
        percent,
        proportion_interval,
        sign_flip_p,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Analysis",
    "analyse_run",
    "bootstrap_interval",
    "compare_seeds",
    "describe_seeds",
    "holm",
    "percent",
    "proportion_interval",
    "sign_flip_p",
]
