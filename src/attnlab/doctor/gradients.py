"""Faults of how training begins and what it moves: first loss, gradients, weights and units that rest."""

import math
from dataclasses import dataclass
from statistics import median
from typing import final

import torch
from torch import Tensor

from attnlab.devices import device_of
from attnlab.doctor.causes import UNFORMED, UNLEARNED, UNREACHED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.limits import CHOKED, CLIPPED, DEAD_UNITS, GOOD, INITIAL, TIGHT, UNMOVED
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.remedies import own_default, rounded
from attnlab.doctor.training_log import solved
from attnlab.doctor.usual import WARMED, usual_clip
from attnlab.doctor.watched import of_layer, samples_of
from attnlab.model import Model
from attnlab.specs import SGD
from attnlab.taps import record
from attnlab.training.measuring import cross_entropy

BATCHES, BATCH = 4, 32
"""Of training examples, for gradients and first losses."""


@final
@dataclass(frozen=True)
class Gradients:
    """Of some batches: the loss and the length of the whole gradient of each, the length of the mean
    gradient of each parameter, and how many things an answer can be.
    """

    losses: list[float]
    dealt: list[float]
    """The losses if answers were dealt out at random, which do not hang on the labels."""
    lengths: list[float]
    parameters: dict[str, float]
    choices: int


def first_gradients(patient: Patient) -> Gradients:
    """At the weights that training began with."""
    return patient.once("first gradients", lambda: _gradients(patient, patient.fresh))


def last_gradients(patient: Patient) -> Gradients:
    """At the weights that were kept."""
    return patient.once("last gradients", lambda: _gradients(patient, patient.model))


def _gradients(patient: Patient, model: Model) -> Gradients:
    """In evaluation mode, so without dropout; no gradient is left in the model."""
    names, weights = zip(*((n, w) for n, w in model.named_parameters() if w.requires_grad), strict=True)
    losses, dealt, lengths = list[float](), list[float](), list[float]()
    sums, choices = [torch.zeros_like(w) for w in weights], 1
    device, size = device_of(model), patient.spec.training.batch
    count = min(BATCHES, max(1, len(patient.learned) // min(size, BATCH)))
    for number in range(count):
        part = patient.learned[slice(number * BATCH, (number + 1) * BATCH)].to(device)
        with torch.enable_grad():
            logits = model(*part.inputs)
            loss = cross_entropy(logits, part.targets, smoothing=patient.spec.training.smoothing)
            found = torch.autograd.grad(loss, weights, allow_unused=True)
        each = [torch.zeros_like(w) if g is None else g for g, w in zip(found, weights, strict=True)]
        losses.append(cross_entropy(logits.detach(), part.targets).item())
        dealt.append(-logits.detach().log_softmax(dim=-1).mean().item())
        lengths.append(math.sqrt(sum(g.square().sum().item() for g in each)))
        sums = [a + b for a, b in zip(sums, each, strict=True)]
        choices = logits.shape[-1]
    return Gradients(
        losses,
        dealt,
        lengths,
        {n: g.norm().item() / count for n, g in zip(names, sums, strict=True)},
        choices,
    )


@final
class InitialLossHigh(Fault):
    """Training begins with a loss far above log V, that of knowing nothing."""

    kind = "initial-loss-high"
    family = "optimisation"
    source = "probe"
    looks_at = (
        "the loss of the first weights, of labels and of answers at random, beside the logarithm of the "
        "number of answers"
    )
    limits = (INITIAL,)
    explains = ("gradients-vanish", "gradients-explode", *UNLEARNED)

    def examine(self, patient: Patient) -> Finding | None:
        first = first_gradients(patient)
        loss, blind = sum(first.losses) / len(first.losses), math.log(max(2, first.choices))
        by_luck = sum(first.dealt) / len(first.dealt)
        if min(loss, by_luck) <= INITIAL.value * blind:  # a few labels can be those that cost most
            return None
        text = f"training begins with a loss of {loss:.3g}; knowing nothing costs {blind:.3g}"
        severity: Severity = "note" if solved(patient) else "serious"
        remedy = Remedy(
            "begin with smaller weights in the readout, and close the last stack with a norm",
            code="torch.nn.init.xavier_uniform_(model.readout.weight)",
            settings=own_default(patient.spec, "end_gain") | {"model.norm": "pre"},
        )
        evidence = {"first loss": loss, "log V": blind, "first loss over log V": loss / blind}
        evidence["first loss of answers dealt out at random"] = by_luck
        return self.finding(severity, 0.85, text, evidence, remedy, from_start=True)


@final
class ClippedMostly(Fault):
    """Nearly every gradient is longer than the clip, so that the clip sets the size of steps."""

    kind = "clipped-mostly"
    family = "optimisation"
    source = "probe"
    looks_at = (
        "lengths of gradients at the sampled steps, or else at the first and at the kept weights, beside "
        "the clip, while accuracy is low"
    )
    limits = (CLIPPED, TIGHT, CHOKED)
    explains = ("rate-too-low", *UNFORMED)

    def examine(self, patient: Patient) -> Finding | None:
        training = patient.spec.training
        if training.clip == 0:
            raise InapplicableError("gradients are not clipped")
        if solved(patient):
            return None
        lengths = _lengths(patient)
        share = sum(each > training.clip for each in lengths) / len(lengths)
        if share < CLIPPED.value:
            return None
        middle = median(lengths)
        text = f"{share:.0%} of gradients exceed the clip of {training.clip:g}, typically {middle:.3g} long"
        usual = usual_clip(patient)  # lengths under a clip that chokes are not those of a training
        clip = rounded(usual if training.clip < usual else 2 * middle)
        remedy = Remedy(
            f"try a clip of {clip:g}, or lower the rate: the clip should catch only what is unusual",
            code=f"torch.nn.utils.clip_grad_norm_(model.parameters(), {clip:g})",
            settings={"training.clip": clip},
        )
        evidence = {"share of gradients": share, "typical length": middle, "clip": training.clip}
        severity, sure = _gravity(middle / training.clip, heeds=isinstance(training.optimiser, SGD))
        return self.finding(severity, sure, text, evidence, remedy, _length_curve(patient, training.clip))


def _gravity(over: float, *, heeds: bool) -> tuple[Severity, float]:
    """Of gradients that are ``over`` times the clip; an optimiser that divides each gradient by its usual
    size does not heed the clip as long as all gradients are cut alike.
    """
    if over > CHOKED.value:
        return ("serious", 0.9) if heeds else ("warning", 0.6)
    return ("warning", 0.5) if heeds and over > TIGHT.value else ("note", 0.4)


def _lengths(patient: Patient) -> list[float]:
    """Of whole gradients."""
    try:
        return [each.gradient for each in samples_of(patient) if each.gradient is not None]
    except UncheckedError:
        return first_gradients(patient).lengths + last_gradients(patient).lengths


def _length_curve(patient: Patient, clip: float) -> Curve | None:
    try:
        samples = [each for each in samples_of(patient) if each.gradient is not None]
    except UncheckedError:
        return None
    lengths = [each.gradient or 0.0 for each in samples]
    steps = [float(each.step) for each in samples]
    return Curve("step", "gradient", steps, {"length": lengths, "clip": [clip] * len(steps)})


@final
class ParametersFrozen(Fault):
    """Matrices that training left as they were, but for weight decay, or that no gradient reached."""

    kind = "parameters-frozen"
    family = "optimisation"
    source = "probe"
    looks_at = "each matrix beside the one that training began with, and gradients of each layer"
    limits = (UNMOVED,)
    explains = ("rate-too-low", "clipped-mostly", *UNFORMED)

    def examine(self, patient: Patient) -> Finding | None:
        silent = _unreached(patient)
        try:
            still, count = _still(patient)
        except UncheckedError:
            if not silent:
                raise
            still, count = [], 1
        if not still and not silent:
            return None
        texts = [f"{len(still)} of {count} matrices did not move: {', '.join(still[:6])}"] * bool(still)
        texts += [f"no gradient ever reached {', '.join(silent[:6])}"] * bool(silent)
        remedy = Remedy(
            "hand all parameters to the optimiser, and check that the loss depends on them",
            code="optimiser = torch.optim.AdamW(model.parameters())",
        )
        reached = [name for name in still if _is_reached(patient, name)]
        evidence = {
            "share of matrices": len(still) / count,
            "share of them that the loss depends on": len(reached) / max(1, len(still)),
            "layers without a gradient": float(len(silent)),
        }
        sure = 0.9 if reached else 0.45 if still else 0.6
        return self.finding("serious", sure, "; ".join(texts), evidence, remedy)


def _is_reached(patient: Patient, name: str) -> bool:
    """Whether the optimiser alone left a matrix: it asks for no gradient or has one, as far as known."""
    try:
        weight = patient.model.get_parameter(name)
        return not weight.requires_grad or last_gradients(patient).parameters[name] > 0
    except (UncheckedError, AttributeError):
        return True


def _still(patient: Patient) -> tuple[list[str], int]:
    """Names of the matrices that did not move, and how many there are."""
    first, last = patient.matrices
    names = list(first)
    decay = patient.recipe.optimiser.weight_decay > 0
    still = [name for name in names if _unmoved(first[name], last[name], decay=decay)]
    if still == names:
        raise UncheckedError("the kept weights are those that training began with")
    return still, len(names)


def _unreached(patient: Patient) -> list[str]:
    """Layers that never had a gradient although others had; none where nobody watched."""
    try:
        samples = [each for each in samples_of(patient) if each.gradient]
    except UncheckedError:
        return []
    names = patient.observed.layers if samples else []
    return [name for name in names if not any(each.gradient for each in of_layer(samples, name))]


def _unmoved(first: Tensor, last: Tensor, *, decay: bool) -> bool:
    """Whether a matrix is what it was, but for the ``decay`` of weights."""
    a, b = first.double().flatten(), last.double().flatten()
    lengths = (a.norm() * b.norm()).item()
    if not decay or lengths == 0 or a.norm() < b.norm():
        return torch.equal(first, last)
    return 1 - (a @ b).item() / lengths < UNMOVED.value


@final
class UnitsDead(Fault):
    """Most hidden units of a feed-forward part have the same value whatever the input."""

    kind = "units-dead"
    family = "optimisation"
    source = "probe"
    looks_at = "hidden values of each feed-forward part, over all tokens"
    limits = (DEAD_UNITS, GOOD)
    explains = UNREACHED

    def examine(self, patient: Patient) -> Finding | None:
        names = [f"{path}.hidden" for path in patient.model.feeds()]
        if not names:
            raise UncheckedError("no hidden values of the model can be observed")
        dead = _still_units(patient, names)
        worst = max(dead, key=lambda name: dead[name])
        if dead[worst] < DEAD_UNITS.value:
            return None
        began = self._from_start(patient, worst)
        poor = patient.accuracy < GOOD.value
        severity: Severity = "note" if not poor else "serious" if began else "warning"
        text = f"{dead[worst]:.0%} of the hidden units of {worst} have the same value for every token"
        remedy = Remedy(
            "use GELU, and lower the rate or warm up",
            code="nn.GELU()  # instead of nn.ReLU()",
            settings={"model.activation": "gelu", "training.schedule": WARMED},
        )
        evidence = {f"share at {name}": share for name, share in dead.items()}
        sure = 0.95 if began else 0.45
        return self.finding(severity, sure, text, evidence, remedy, from_start=began)

    @staticmethod
    def _from_start(patient: Patient, name: str) -> bool:
        try:
            return _still_units(patient.beginning, [name])[name] >= DEAD_UNITS.value
        except UncheckedError:
            return False


def _still_units(patient: Patient, names: list[str]) -> dict[str, float]:
    """The share of hidden units that have the same value for every token."""
    with record(patient.model, *names) as seen:
        patient.ask(*patient.inputs)
    found = {}
    for name in names:
        values = seen[name].flatten(0, -2)
        found[name] = (values.amax(dim=0) == values.amin(dim=0)).double().mean().item()
    return found


FAULTS = (InitialLossHigh, ClippedMostly, ParametersFrozen, UnitsDead)
