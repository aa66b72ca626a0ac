"""Learning-rate schedules as pure functions, so that a resumed run follows the very same one."""

import math

from attnlab.spec import Constant, Cosine, OneCycle, Plateau, ScheduleSpec


def lr_factor(spec: ScheduleSpec, step: int, total: int, valid_losses: list[float]) -> float:
    """What the peak learning rate is multiplied by at ``step`` of ``total``.

    ``valid_losses`` are those of the epochs that have ended.
    """
    match spec:
        case Constant():
            return _warmup(step, spec.warmup * total)
        case Cosine():
            warmup = spec.warmup * total
            if step < warmup:
                return _warmup(step, warmup)
            return spec.floor + (1 - spec.floor) * _fall((step - warmup) / (total - warmup))
        case OneCycle():
            peak = spec.peak * total
            if step < peak:
                return spec.start + (1 - spec.start) * (1 - _fall(step / peak))
            return _fall((step - peak) / (total - peak))
        case Plateau():
            return spec.factor ** plateaus(valid_losses, spec.patience)


def plateaus(losses: list[float], patience: int) -> int:
    """How often more than ``patience`` epochs in a row brought no new lowest loss."""
    count, waited, lowest = 0, 0, math.inf
    for loss in losses:
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited > patience:
            count, waited = count + 1, 0
    return count


def _warmup(step: int, length: float) -> float:
    return 1.0 if step >= length else (step + 1) / (length + 1)


def _fall(share: float) -> float:
    """Half a cosine from 1 at 0 to 0 at 1."""
    return (1 + math.cos(math.pi * share)) / 2
