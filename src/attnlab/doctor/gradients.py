"""Faults of how training begins and what it moves: first loss, gradients, weights and units that rest."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnlab.devices import device_of
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.limits import CHOKED, CLIPPED, DEAD_UNITS, GOOD, INITIAL, UNEVEN, UNMOVED
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.training_log import solved
from attnlab.model import Model
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
    losses, lengths, sums, choices = list[float](), list[float](), [torch.zeros_like(w) for w in weights], 1
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
        lengths.append(math.sqrt(sum(g.square().sum().item() for g in each)))
        sums = [a + b for a, b in zip(sums, each, strict=True)]
        choices = logits.shape[-1]
    return Gradients(
        losses, lengths, {n: g.norm().item() / count for n, g in zip(names, sums, strict=True)}, choices
    )


@final
class InitialLossHigh(Fault):
    """Training begins with a loss far above log V, that of knowing nothing."""

    kind = "initial-loss-high"
    family = "optimisation"
    source = "probe"
    looks_at = "the loss of the first weights beside the logarithm of the number of answers"
    limits = (INITIAL,)

    def examine(self, patient: Patient) -> Finding | None:
        first = first_gradients(patient)
        loss, blind = sum(first.losses) / len(first.losses), math.log(max(2, first.choices))
        if loss <= INITIAL.value * blind:
            return None
        text = f"training begins with a loss of {loss:.3g}; knowing nothing costs {blind:.3g}"
        severity: Severity = "note" if solved(patient) else "warning"
        remedy = Remedy("begin with smaller weights in the readout, and close the last stack with a norm")
        evidence = {"first loss": loss, "log V": blind, "first loss over log V": loss / blind}
        return self.finding(severity, 0.6, text, evidence, remedy)


@final
class ClippedMostly(Fault):
    """Nearly every gradient is longer than the clip, so that the clip sets the size of steps."""

    kind = "clipped-mostly"
    family = "optimisation"
    source = "probe"
    looks_at = (
        "lengths of gradients at the first and at the kept weights beside the clip, while accuracy is low"
    )
    limits = (CLIPPED, CHOKED)

    def examine(self, patient: Patient) -> Finding | None:
        clip = patient.spec.training.clip
        if clip == 0:
            raise InapplicableError("gradients are not clipped")
        if solved(patient):
            return None
        lengths = first_gradients(patient).lengths + last_gradients(patient).lengths
        share = sum(each > clip for each in lengths) / len(lengths)
        if share < CLIPPED.value:
            return None
        middle = sorted(lengths)[len(lengths) // 2]
        text = f"{share:.0%} of gradients are longer than the clip of {clip:g}, typically {middle:.3g}"
        remedy = Remedy(
            f"let the clip catch only what is unusual, such as {2 * middle:.2g}, or lower the rate",
            command=f"attnlab train {patient.spec.task.kind} --training.clip {2 * middle:.2g}",
        )
        evidence = {"share of gradients": share, "typical length": middle, "clip": clip}
        choked = middle > CHOKED.value * clip
        return self.finding(
            "serious" if choked else "warning", 0.9 if choked else 0.4, text, evidence, remedy
        )


@final
class GradientsUneven(Fault):
    """Gradients vanish or explode from layer to layer."""

    kind = "gradients-uneven"
    family = "optimisation"
    source = "probe"
    looks_at = "the gradient of each layer at the first weights"
    limits = (UNEVEN,)

    def examine(self, patient: Patient) -> Finding | None:
        layers, found = [each.path for each in patient.fresh.layers()], first_gradients(patient).parameters
        if len(layers) < 2:
            raise InapplicableError("there are not two layers")
        lengths = {
            path: math.sqrt(sum(g**2 for name, g in found.items() if name.startswith(f"{path}.")))
            for path in layers
        }
        least, most = min(lengths.values()), max(lengths.values())
        if most <= UNEVEN.value * least:
            return None
        weak, strong = (next(path for path, g in lengths.items() if g == end) for end in (least, most))
        ratio = most / least if least else math.inf
        text = f"the gradient of {strong} is {ratio:.1g} times that of {weak}"
        remedy = Remedy(
            "use pre-norm blocks, or check the residual sums and the scale of the first weights"
        )
        curve = Curve(
            "layer",
            "gradient",
            [float(n) for n in range(len(layers))],
            {"gradient": list(lengths.values())},
        )
        evidence = {"largest gradient": most, "smallest gradient": least}
        return self.finding("warning", 0.6, text, evidence, remedy, curve)


@final
class ParametersFrozen(Fault):
    """Matrices that training left as they were, but for weight decay."""

    kind = "parameters-frozen"
    family = "optimisation"
    source = "probe"
    looks_at = "each matrix of the kept weights beside the one that training began with"
    limits = (UNMOVED,)

    def examine(self, patient: Patient) -> Finding | None:
        first, last = patient.fresh.state_dict(), patient.model.state_dict()
        names = [name for name, weight in patient.model.named_parameters() if weight.dim() > 1]
        decay = patient.spec.training.optimiser.weight_decay > 0
        still = [name for name in names if _unmoved(first[name], last[name].cpu(), decay=decay)]
        if still == names:
            raise UncheckedError("the kept weights are those that training began with")
        if not still:
            return None
        text = f"{len(still)} of {len(names)} matrices did not move: {', '.join(still[:6])}"
        remedy = Remedy(
            "hand all parameters to the optimiser, and check that the loss depends on them",
            code="optimiser = torch.optim.AdamW(model.parameters())",
        )
        share = len(still) / len(names)
        return self.finding("serious", 0.9, text, {"share of matrices": share}, remedy)


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

    def examine(self, patient: Patient) -> Finding | None:
        names = [f"{path}.hidden" for path in patient.model.feeds()]
        if not names:
            raise UncheckedError("no hidden values of the model can be observed")
        with record(patient.model, *names) as seen:
            patient.ask(*patient.inputs)
        dead = {}
        for name in names:
            values = seen[name].flatten(0, -2)
            dead[name] = (values.amax(dim=0) == values.amin(dim=0)).double().mean().item()
        worst = max(dead, key=lambda name: dead[name])
        if dead[worst] < DEAD_UNITS.value:
            return None
        severity: Severity = "warning" if patient.accuracy < GOOD.value else "note"
        text = f"{dead[worst]:.0%} of the hidden units of {worst} have the same value for every token"
        remedy = Remedy(
            "lower the rate or warm up, or use GELU", command="attnlab train TASK --model.activation gelu"
        )
        return self.finding(
            severity, 0.6, text, {f"share at {name}": share for name, share in dead.items()}, remedy
        )


FAULTS = (InitialLossHigh, ClippedMostly, GradientsUneven, ParametersFrozen, UnitsDead)
