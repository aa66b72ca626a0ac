"""Every kind of fault that the doctor knows. To add one, write its class and name it in its module."""

from attnlab.doctor import (
    decoding,
    examples,
    experiments,
    gradients,
    heads,
    labels,
    layers,
    masks,
    order,
    paths,
    rates,
    reach,
    scores,
    searching,
    splits,
    steps,
    training_log,
)
from attnlab.doctor.fault import Fault

FAULTS: tuple[type[Fault], ...] = (
    *rates.FAULTS,
    *training_log.FAULTS,
    *steps.FAULTS,
    *order.FAULTS,
    *examples.FAULTS,
    *splits.FAULTS,
    *labels.FAULTS,
    *decoding.FAULTS,
    *masks.FAULTS,
    *scores.FAULTS,
    *paths.FAULTS,
    *reach.FAULTS,
    *heads.FAULTS,
    *gradients.FAULTS,
    *layers.FAULTS,
    *searching.FAULTS,
    *experiments.FAULTS,
)
"""In the order in which they are looked for."""
