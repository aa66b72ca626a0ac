"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from attnlab.analysis.evaluation import evaluate
from attnlab.analysis.patterns import attention_patterns
from attnlab.analysis.prediction import predict
from attnlab.analysis.statistics import proportion_interval
from attnlab.analysis.verification import verify

__all__ = ["attention_patterns", "evaluate", "predict", "proportion_interval", "verify"]
