"""Studies: many runs as one result, on one machine or on many; sweeps: a search over specs."""

from attnlab.studies.study import EXACT_MATCH, STEPS_TO_99, Curve, Measure, Study

__all__ = ["EXACT_MATCH", "STEPS_TO_99", "Curve", "Measure", "Study"]
