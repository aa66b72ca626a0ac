"""What a watched training shows of its layers: sizes of steps, lengths of gradients and of weights."""

from collections.abc import Iterable
from statistics import median

from attnlab.doctor.findings import Curve
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.runs import LayerSample, Observed, Sample

FEW = 3
"""Sampled steps below which nothing is said."""


def samples_of(patient: Patient, least: int = FEW) -> list[Sample]:
    """Steps that were looked at; enough of them."""
    samples = patient.observed.samples
    if len(samples) < least:
        raise UncheckedError(f"{len(samples)} steps of the training were looked at, and {least} are needed")
    return samples


def middle(values: Iterable[float | None]) -> float:
    """The median of what is known; 0 of nothing."""
    known = [each for each in values if each is not None]
    return median(known) if known else 0.0


def matrices(observed: Observed) -> list[str]:
    """Layers that hold matrices which every example moves: numbered ones and the last; all, if none is."""
    numbered = [name for name in observed.layers if name.rpartition(".")[2].isdigit()]
    rest = [name for name in observed.layers[-1:] if name not in numbered]
    return [*numbered, *rest] if numbered else observed.layers


def step_size(sample: Sample, names: Iterable[str]) -> float:
    """How far the step moved a layer, over its length: the median of the layers ``names``."""
    return middle(sample.layers[name].update for name in names if name in sample.layers)


def full_steps(patient: Patient) -> list[float]:
    """What each sampled step would be at the highest rate."""
    sizes, samples, spec = step_sizes(patient), samples_of(patient), patient.known_spec
    peak = max(each.lr for each in samples) if spec is None else spec.training.lr
    return [sizes[each.step] * peak / each.lr for each in samples if each.lr > 0]


def first_steps(patient: Patient) -> float:
    """The size of the first few steps, had they been taken at the highest rate."""
    if samples_of(patient)[0].step != 1:
        raise UncheckedError("the first step was not looked at")
    return median(full_steps(patient)[:FEW])


def weights_grown(observed: Observed) -> float:
    """The length of the weights at the last sampled step over that at the first, of the median layer."""
    lengths = weight_lengths(observed).values()
    return middle(each[-1] / each[0] for each in lengths)


def weight_lengths(observed: Observed) -> dict[str, list[float]]:
    """The length of the weights of each layer at each sampled step."""
    found = {
        name: [each.weight for each in of_layer(observed.samples, name) if each.weight is not None]
        for name in matrices(observed)
    }
    return {name: each for name, each in found.items() if each and each[0] > 0}


def way_at_most(patient: Patient) -> float:
    """The length of all steps together over that of the weights, which is as far as they can get; steps
    still to come count as the largest so far at the highest rate.
    """
    sizes, observed = step_sizes(patient), patient.observed
    way, before, last = 0.0, 0, 0.0
    for step, size in sizes.items():
        way += (step - before) * (max(last, size) if before else size)
        before, last = step, size
    left = (observed.total or observed.steps) - before
    return way + left * max(full_steps(patient), default=last)


def step_sizes(patient: Patient, least: int = FEW) -> dict[int, float]:
    """By the number of each sampled step."""
    names = matrices(patient.observed)
    return {each.step: step_size(each, names) for each in samples_of(patient, least)}


def of_layer(samples: Iterable[Sample], name: str) -> list[LayerSample]:
    return [each.layers[name] for each in samples if name in each.layers]


def watched_losses(observed: Observed) -> Curve:
    """The mean and the highest loss of each window of steps."""
    return Curve(
        "step",
        "training loss",
        [float(each.step) for each in observed.losses],
        {
            "mean": [each.loss for each in observed.losses],
            "highest": [each.highest for each in observed.losses],
        },
    )
