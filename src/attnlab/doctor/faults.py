"""Every kind of fault that the doctor knows. To add one, write its class and name it in its module."""

from itertools import chain

from attnlab.doctor import decoding, heads, masks, paths, scores, training_log
from attnlab.doctor.fault import Fault

FAULTS: tuple[type[Fault], ...] = tuple(
    chain(training_log.FAULTS, decoding.FAULTS, masks.FAULTS, scores.FAULTS, paths.FAULTS, heads.FAULTS)
)
"""In the order in which they are looked for: what costs least first."""
