"""Analysis: what a trained model can do, where it fails, and what it looks at."""

from attnlab.analysis.statistics import percent, plural

__all__ = ["percent", "plural"]
