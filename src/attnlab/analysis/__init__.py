"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.analysis.choices import Analysis
    from attnlab.analysis.digits import evaluate_digits
    from attnlab.analysis.evaluation import evaluate
    from attnlab.analysis.grids import evaluate_grids
    from attnlab.analysis.keeping import analyse_run, evaluate_run, verify_run
    from attnlab.analysis.limits import check_size
    from attnlab.analysis.patterns import attention_patterns
    from attnlab.analysis.prediction import predict
    from attnlab.analysis.seeds import bootstrap_interval, compare_seeds, describe_seeds, holm, sign_flip_p
    from attnlab.analysis.sorting import evaluate_sorting, predict_sorting
    from attnlab.analysis.statistics import percent, proportion_interval
    from attnlab.analysis.verification import verify
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Analysis",
    "analyse_run",
    "attention_patterns",
    "bootstrap_interval",
    "check_size",
    "compare_seeds",
    "describe_seeds",
    "evaluate",
    "evaluate_digits",
    "evaluate_grids",
    "evaluate_run",
    "evaluate_sorting",
    "holm",
    "percent",
    "predict",
    "predict_sorting",
    "proportion_interval",
    "sign_flip_p",
    "verify",
    "verify_run",
]
