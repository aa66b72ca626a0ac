"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from attnlab.analysis.evaluation import evaluate
from attnlab.analysis.patterns import attention_patterns
from attnlab.analysis.prediction import predict
from attnlab.analysis.statistics import percent, proportion_interval
from attnlab.analysis.verification import check_size, verify

__all__ = [
    "attention_patterns",
    "check_size",
    "evaluate",
    "percent",
    "predict",
    "proportion_interval",
    "verify",
]
