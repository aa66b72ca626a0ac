"""Faults of answers and how they are scored: the start token, the shift, decoding, the majority class.

Some are symptoms of other faults. Their confidence, which is that of being the cause, is lower, so that a
cause that was found as well stands above them.
"""

from typing import final

import torch
from torch import Tensor

from attnlab.devices import device_of
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import FORCED, GOOD, MAJORITY
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError, asking, distinct
from attnlab.doctor.usual import livelier

DECODED, STARTS = 64, 3
"""Examples that are decoded, and first tokens to decode from where there is no start token."""


def _given(patient: Patient) -> tuple[Tensor, Tensor]:
    """The tokens of the answer that the model is given, and those that it should say."""
    return patient.inputs[patient.fed], patient.probed.targets


@final
class TargetNotShifted(Fault):
    """The model is given the very token that it should say."""

    kind = "target-not-shifted"
    family = "evaluation"
    source = "probe"
    looks_at = "tokens of the answer that are fed, beside the targets"
    explains = ("decoding-disagrees", "memory-ignored")

    def examine(self, patient: Patient) -> Finding | None:
        fed, targets = _given(patient)
        if fed.shape != targets.shape or not torch.equal(fed[:, 1:], targets[:, 1:]):
            return None
        if torch.equal(targets[:, 1:], targets[:, :-1]):
            return None  # one token over and over
        remedy = Remedy(
            "feed the start token, then all targets but the last",
            code="fed = torch.cat((start, targets[:, :-1]), dim=1)",
        )
        text = "the tokens that are fed are the targets themselves, so copying gives full marks"
        equal = (fed == targets).double().mean().item()
        return self.finding("serious", 1.0, text, {"share of equal tokens": equal}, remedy)


@final
class StartTokenMissing(Fault):
    """The first token that is fed belongs to the answer, so it is given and never predicted."""

    kind = "start-token-missing"
    family = "evaluation"
    source = "probe"
    looks_at = "the first token of the answer that is fed: a start token is the same in all examples"
    explains = ("decoding-disagrees",)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.fed == 0:
            raise InapplicableError("it goes on with its input, and so needs no start token")
        fed, targets = _given(patient)
        kinds = len(distinct(fed[:, 0]))
        if len(fed) < 2:
            raise UncheckedError("there is a single example")
        if kinds == 1 or torch.equal(fed, targets):
            return None
        remedy = Remedy(
            "begin each answer with a token of its own",
            code="fed = torch.cat((start, targets[:, :-1]), dim=1)",
        )
        text = (
            "answers begin with different tokens: the first one is given to the model and never predicted"
        )
        evidence = {"different first tokens": float(kinds)} | _from_each_start(patient)
        return self.finding("serious", 0.95, text, evidence, remedy)


def _from_each_start(patient: Patient) -> dict[str, float]:
    """The share of answers that are right with the first token given, and of those that are right with it,
    if decoding begins with one of the most frequent; nothing where the model does not decode.
    """
    examples = patient.judged[slice(0, DECODED)].to(device_of(patient.model))
    first, targets = examples.inputs[patient.fed][:, 0], examples.targets
    forced = (patient.said[: len(targets)].to(targets.device) == targets).all(dim=1)
    found = {"accuracy with the first token given": forced.double().mean().item()}
    tokens, counts = torch.unique(first, return_counts=True)
    try:
        for token in tokens[counts.argsort(descending=True)][:STARTS].tolist():
            with asking():
                said = patient.model.answer(examples.inputs[0], start=token, length=targets.shape[1])
            if said.shape != targets.shape:
                return {}
            right = (first == token) & (said == targets).all(dim=1)
            found[f"accuracy by decoding from token {token}"] = right.double().mean().item()
    except UncheckedError:
        return {}
    return found


@final
class DecodingDisagrees(Fault):
    """Accuracy with true tokens fed is not that of free decoding."""

    kind = "decoding-disagrees"
    family = "evaluation"
    source = "probe"
    looks_at = "accuracy with true tokens fed and by greedy decoding, which are the same number"
    limits = (FORCED,)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.fed == 0:
            raise InapplicableError("it goes on with its input, and how far is not known")
        patient.require_still()
        examples = patient.judged[slice(0, DECODED)].to(device_of(patient.model))
        fed, targets = examples.inputs[patient.fed], examples.targets
        with asking():
            said = patient.model.answer(examples.inputs[0], start=int(fed[0, 0]), length=targets.shape[1])
        if said.shape != targets.shape:
            raise UncheckedError("the model does not say whole answers")
        free = (said == targets).all(dim=1).double().mean().item()
        forced = (
            (patient.said[: len(targets)].to(targets.device) == targets).all(dim=1).double().mean().item()
        )
        if abs(forced - free) <= FORCED.value:
            return None
        remedy = Remedy(
            "feed the same start token in training and in decoding, shift targets by one, and check the "
            "causal mask and the cache"
        )
        text = (
            f"{forced:.1%} of answers are right with true tokens fed, but {free:.1%} by decoding; both are "
            "the same number if all is well"
        )
        evidence = {"accuracy with true tokens": forced, "accuracy by decoding": free}
        return self.finding("serious", 0.8, text, evidence, remedy)


@final
class ConstantPredictor(Fault):
    """The model gives the same answer to every input."""

    kind = "constant-predictor"
    family = "evaluation"
    source = "probe"
    looks_at = "answers to validation examples"
    limits = (GOOD,)
    explains = ("majority-class",)

    def examine(self, patient: Patient) -> Finding | None:
        said = patient.said
        if len(said) < 2 or len(distinct(patient.judged.targets)) < 2:
            raise UncheckedError("the validation examples have a single answer")
        if len(distinct(said)) > 1:
            return None
        remedy = Remedy(
            "the model has learned no more than the most frequent answer: look for a rate that is too "
            "high or too low, and for inputs that do not reach the output",
            settings=livelier(patient),
        )
        text = "the model gives the same answer to every input"
        evidence = {"different answers": 1.0, "accuracy": patient.accuracy}
        return self.finding("serious", 0.5, text, evidence, remedy)


@final
class MajorityClass(Fault):
    """The accuracy is that of always naming the most frequent class."""

    kind = "majority-class"
    family = "evaluation"
    source = "probe"
    looks_at = "accuracy beside the share of the most frequent class"
    limits = (MAJORITY, GOOD)

    def examine(self, patient: Patient) -> Finding | None:
        targets = patient.judged.targets
        if targets.dim() != 1:
            raise InapplicableError("its answers are no classes")
        if len(distinct(targets)) < 2:
            raise UncheckedError("the validation examples have a single class")
        share = max((targets == each).double().mean().item() for each in distinct(targets))
        accuracy = patient.accuracy
        if accuracy > share + MAJORITY.value:
            return None
        severity: Severity = "warning" if accuracy >= GOOD.value else "serious"
        remedy = Remedy(
            "report accuracy beside that of the most frequent class, by class, and balance the classes; if "
            "they are balanced, try another rate",
            settings=livelier(patient),
        )
        text = (
            f"{accuracy:.1%} right is no more than the {share:.1%} of always naming the most frequent class"
        )
        evidence = {"accuracy": accuracy, "share of the most frequent class": share}
        return self.finding(severity, 0.4, text, evidence, remedy)


FAULTS = (TargetNotShifted, StartTokenMissing, DecodingDisagrees, ConstantPredictor, MajorityClass)
