"""Faults of single layers: the scale of their first weights, and gradients that vanish or explode."""

import math
from abc import abstractmethod
from statistics import median
from typing import final

from torch import Tensor, nn

from attnlab.doctor.causes import UNLEARNED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.gradients import first_gradients
from attnlab.doctor.limits import EXPLODE, SCALED, VANISH
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.training_log import solved
from attnlab.doctor.usual import WARMED
from attnlab.doctor.watched import matrices, middle, of_layer, samples_of
from attnlab.training.watching import layer_of


@final
class InitialScale(Fault):
    """The first weights are far larger or smaller than what keeps the size of activations."""

    kind = "initial-scale"
    family = "optimisation"
    source = "probe"
    looks_at = "spread of the first weights of each linear map times the root of its number of inputs"
    limits = (SCALED,)
    explains = (
        *("diverged", "initial-loss-high", "gradients-vanish", "gradients-explode"),
        *("scale-missing", "positions-saturated", "schedule-ends-early"),
        *UNLEARNED,
    )

    def examine(self, patient: Patient) -> Finding | None:
        scales = {name: _scale(weight) for name, weight in _maps(patient.fresh).items()}
        if not scales:
            raise InapplicableError("the model has no linear map")
        typical = median(scales.values())
        if 1 / SCALED.value <= typical <= SCALED.value:
            return None
        much = "large" if typical > 1 else "small"
        text = f"the first weights are {typical:.2g} times what keeps the size of activations: too {much}"
        remedy = Remedy(
            "begin with a spread of 1/√(number of inputs), as torch.nn.Linear and Xavier's rule do",
            code="torch.nn.init.xavier_uniform_(layer.weight)",
        )
        evidence = {"spread times √inputs, median": typical} | {
            f"at {name}": scale for name, scale in [*scales.items()][:12]
        }
        curve = Curve(
            "linear map",
            "spread times √inputs",
            [float(n) for n in range(len(scales))],
            {"first weights": list(scales.values())},
        )
        severity: Severity = "note" if solved(patient) else "serious"
        return self.finding(severity, 0.85, text, evidence, remedy, curve, from_start=True)


def _maps(model: nn.Module) -> dict[str, Tensor]:
    """Weights of linear maps and convolutions, by their names."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d)
    return {name: part.weight for name, part in model.named_modules() if isinstance(part, kinds)}


def _scale(weight: Tensor) -> float:
    """The spread of a matrix times the root of the number of inputs: about 1 keeps the size."""
    values = weight.detach().double().flatten(1)
    return values.square().mean().sqrt().item() * math.sqrt(values.shape[1])


def layer_gradients(patient: Patient) -> dict[str, list[float]]:
    """Lengths of the gradient of each layer: at sampled steps, or else at its first weights."""
    return patient.once("layer gradients", lambda: _layer_gradients(patient))


def _layer_gradients(patient: Patient) -> dict[str, list[float]]:
    try:
        samples, names = samples_of(patient), matrices(patient.observed)
    except UncheckedError:
        return _probed(patient)
    found = {name: [each.gradient or 0.0 for each in of_layer(samples, name)] for name in names}
    return {name: each for name, each in found.items() if any(each)}


def _probed(patient: Patient) -> dict[str, list[float]]:
    squares: dict[str, float] = {}
    for name, length in first_gradients(patient).parameters.items():
        squares[layer_of(name)] = squares.get(layer_of(name), 0.0) + length**2
    paths = [each.path for each in patient.fresh.layers()]
    last = [name for name in [*squares][-1:] if name not in paths]
    return {name: [math.sqrt(squares[name])] for name in [*paths, *last] if squares.get(name)}


def ratio_to_later(patient: Patient) -> dict[str, float]:
    """The gradient of each layer over the largest of those behind it: the geometric mean of that of the
    first step, when no training has changed it yet, and the median.
    """
    lengths = layer_gradients(patient)
    names = list(lengths)
    if len(names) < 2:
        raise InapplicableError("there are not two layers with gradients")
    found = {}
    for number, name in enumerate(names[:-1]):
        later = [
            max(each) for each in zip(*(lengths[other] for other in names[number + 1 :]), strict=False)
        ]
        ratios = [a / b for a, b in zip(lengths[name], later, strict=False) if a > 0 and b > 0]
        if ratios:
            found[name] = math.sqrt(ratios[0] * median(ratios))
    return found


class _Gradients(Fault):
    """Gradients of layers beside those of the layers behind them."""

    family = "optimisation"
    source = "log"
    looks_at = "the gradient of each layer over the largest of those behind it, at the sampled steps"

    def examine(self, patient: Patient) -> Finding | None:
        ratios = ratio_to_later(patient)
        if not ratios:
            raise UncheckedError("no layer has a gradient that could be compared")
        worst = self._worst(ratios)
        if worst is None:
            return None
        lengths = layer_gradients(patient)
        text = f"the gradient of {worst} is {ratios[worst]:.1g} times that of the layers behind it"
        curve = Curve(
            "layer",
            "gradient",
            [float(n) for n in range(len(lengths))],
            {"typical": [middle(each) for each in lengths.values()]},
        )
        evidence = {f"{name} over those behind it": ratio for name, ratio in ratios.items()}
        severity: Severity = "note" if solved(patient) else "serious"
        return self.finding(severity, 0.8, text, evidence, self._remedy(), curve)

    @abstractmethod
    def _worst(self, ratios: dict[str, float]) -> str | None:
        """The layer that is worst, if it is bad."""

    @abstractmethod
    def _remedy(self) -> Remedy: ...


@final
class GradientsVanish(_Gradients):
    """The gradient that reaches an early layer is next to nothing."""

    kind = "gradients-vanish"
    limits = (VANISH,)
    explains = ("parameters-frozen", *UNLEARNED)

    def _worst(self, ratios: dict[str, float]) -> str | None:
        worst = min(ratios, key=lambda name: ratios[name])
        return worst if ratios[worst] < VANISH.value else None

    def _remedy(self) -> Remedy:
        return Remedy(
            "use residual sums with pre-norm blocks, and an optimiser that scales gradients",
            code="x = x + attention(norm(x))  # not norm(x + attention(x))",
            settings={"model.norm": "pre", "training.optimiser": "adamw", "training.lr": 2e-3},
        )


@final
class GradientsExplode(_Gradients):
    """The gradient of an early layer is far larger than that of the layers behind it."""

    kind = "gradients-explode"
    limits = (EXPLODE,)
    explains = ("diverged", *UNLEARNED)

    def _worst(self, ratios: dict[str, float]) -> str | None:
        worst = max(ratios, key=lambda name: ratios[name])
        return worst if ratios[worst] > EXPLODE.value else None

    def _remedy(self) -> Remedy:
        return Remedy(
            "normalise before each block, warm up, clip, and use an optimiser that scales each gradient",
            code="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            settings={
                **{"model.norm": "pre", "training.clip": 1.0, "training.schedule": WARMED},
                **{"training.optimiser": "adamw", "training.lr": 2e-3},
            },
        )


FAULTS = (InitialScale, GradientsVanish, GradientsExplode)
