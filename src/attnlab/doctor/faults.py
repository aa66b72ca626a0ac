"""Every kind of fault that the doctor knows. To add one, write its class and name it in its module."""

from attnlab.doctor import decoding, examples, gradients, heads, masks, paths, scores, training_log
from attnlab.doctor.fault import Fault

FAULTS: tuple[type[Fault], ...] = (
    *training_log.FAULTS,
    *examples.FAULTS,
    *decoding.FAULTS,
    *masks.FAULTS,
    *scores.FAULTS,
    *paths.FAULTS,
    *heads.FAULTS,
    *gradients.FAULTS,
)
"""In the order in which they are looked for."""
