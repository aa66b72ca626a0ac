"""Lesson 5: training that fails: bugs of a training loop by hand, and patients for the doctor."""

import math
from typing import Any

import torch
import torch.nn.functional as F

from attnlab.course.answers import Answers
from attnlab.course.comparing import compare
from attnlab.course.feedback import Exercise, Wrong
from attnlab.course.patients import (
    PLANTED,
    SICK,
    diagnose_spec,
    diagnosed,
    patient_spec,
    train_once,
    valid_accuracy,
)
from attnlab.errors import LabError, brief, nearest
from attnlab.specs import to_json

EXAMPLES, PLACES, SYMBOLS, START = 3, 5, 11, 10
CLASSES = (2, 12, 97)
LOWEST, HIGHEST = 100, 999
CURED = 0.8
"""The share of right validation answers of a training that has been cured."""
STEPS = 700
"""Steps of a cured training, at most: so the check stays short."""


def check_first_loss(answers: Answers) -> Wrong | None:
    for classes in CLASSES:
        got = float(
            answers.tensor_of("first_loss", "first_loss(classes)", classes, shape=()).double().item()
        )
        right = math.log(classes)
        if abs(got - right) <= 1e-3:
            continue
        hint = "a model that knows nothing gives each class 1 / classes; the loss is minus the ln of that"
        if abs(got - math.log2(classes)) <= 1e-3:
            hint = "this is in bits; torch's cross entropy uses the natural logarithm"
        elif abs(got - math.log10(classes)) <= 1e-3:
            hint = "torch's cross entropy uses the natural logarithm, not that to base 10"
        elif abs(got + right) <= 1e-3:
            hint = "the sign: a loss is minus the logarithm of the probability"
        elif abs(got - 1 / classes) <= 1e-3:
            hint = "this is the probability of the right class; the loss is minus its logarithm"
        return Wrong(f"{got:.3f} for {classes} classes", "the loss of a model that knows nothing", hint)
    return None


def check_decoder_input(answers: Answers) -> Wrong | None:
    target = torch.randint(SYMBOLS - 1, (EXAMPLES, PLACES))
    target[:, 0] = torch.tensor([1, 2, 3])
    called = "decoder_input(target, start)"
    leading: dict[tuple[int, ...], str] = {
        (
            EXAMPLES,
            PLACES - 1,
        ): "one place is missing: put the start token in front and leave only the last token out",
        (EXAMPLES, PLACES + 1): "one place too many: the last token of the target is never fed",
    }
    got = answers.tensor_of(
        "decoder_input", called, target.clone(), START, shape=(EXAMPLES, PLACES), hints=leading
    )
    starts = torch.full((EXAMPLES, 1), START)
    return compare(
        got,
        torch.cat([starts, target[:, :-1]], dim=1),
        {
            "this is the target itself: the decoder sees the token that it has to predict, learns "
            "to copy, and "
            "fails when it has to generate": target,
            "this is shifted to the left: the decoder sees the token after the one it predicts": (
                torch.cat([target[:, 1:], starts], dim=1)
            ),
            "the tokens go around in a circle: the last token of the answer stands in front": (
                target.roll(1, dims=1)
            ),
            "0 stands in front, which is also a digit; use the start token": (
                torch.cat([0 * starts, target[:, :-1]], dim=1)
            ),
        },
        expected="the start token, then all tokens of the target but the last",
        hint="write down what the decoder may know when it predicts the first token: only that it starts",
    )


def check_loss(answers: Answers) -> Wrong | None:
    logits = torch.randn(EXAMPLES, PLACES, SYMBOLS)
    target = torch.randint(1, SYMBOLS, (EXAMPLES, PLACES))
    target[:, 1] = 0
    target[0] = 0
    got = answers.tensor_of("loss", "loss(logits, target)", logits.clone(), target.clone(), shape=())
    flat, truth = logits.flatten(0, 1), target.flatten()
    each = F.cross_entropy(flat, truth, reduction="none").view(EXAMPLES, PLACES)
    return compare(
        got,
        each.mean(),
        {
            "tokens 0 are left out as if they were padding, but 0 is also a digit: no zero of an answer is "
            "ever learned; leave ignore_index out": F.cross_entropy(flat, truth, ignore_index=0),
            "this is a sum over tokens; take the mean": each.sum(),
            "this is the mean over examples of sums over places": each.sum(dim=1).mean(),
            "the first token is left out of the loss, so the leading digit is never learned": each[
                :, 1:
            ].mean(),
            "the last token is left out of the loss": each[:, :-1].mean(),
            "cross_entropy takes logits; here it is given probabilities": F.cross_entropy(
                flat.softmax(dim=-1), truth
            ),
            "logits were reshaped without moving the axis of the symbols: cut (B, T, V) to (B * T, V)": (
                F.cross_entropy(logits.reshape(EXAMPLES, SYMBOLS, PLACES), target)
            ),
        },
        expected="the mean cross entropy over all tokens of all answers",
        hint="flatten logits to (B * T, V) and targets to (B * T,), then F.cross_entropy",
    )


def check_zero_first(answers: Answers) -> Wrong | None:
    given = answers.number("leading_zero", "a share from 0 to 1")
    right, all_pairs = leading_zero_share(LOWEST), leading_zero_share(0)
    expected = f"the share of pairs of operands from {LOWEST} to {HIGHEST} whose sum is below 1000"
    if abs(given - right) <= 0.005:
        return None
    hint = "count the pairs: two loops over the operands, or torch.arange and broadcasting"
    if abs(given - all_pairs) <= 0.005:
        hint = f"this counts operands from 0; here they are {LOWEST} to {HIGHEST}"
    elif abs(given - (1 - right)) <= 0.005:
        hint = "this is the share of sums with four digits; a leading zero stands in front of three"
    elif abs(given / 100 - right) <= 0.005:
        hint = "write a share from 0 to 1, not percent"
    return Wrong(f"{given:.4f}", expected, hint)


def leading_zero_share(lowest: int) -> float:
    """The share of pairs of operands whose sum has three digits at most."""
    numbers = torch.arange(lowest, HIGHEST + 1)
    return (numbers[:, None] + numbers < 1000).double().mean().item()


def check_kinds(answers: Answers) -> Wrong | None:
    given = _by_patient(answers, "kinds", 'the kind of fault, such as "residual-missing"')
    for name, said in given.items():
        found = diagnosed(name)
        expected = f"the first kind of fault that attnlab doctor finds in patient {name}"
        if said == found.kinds[0] or (said in found.kinds and said == PLANTED[name]):
            continue
        if said in found.explained_by:
            hint = f"this is a symptom: the doctor explains {said} by {found.explained_by[said]}"
        elif said in found.kinds:
            hint = "the doctor finds this too, but not first: causes stand above what they bring about"
        else:
            hint = "train the patient by its command and read the first finding of attnlab doctor"
        return Wrong(f"{said!r} for patient {name}", expected, hint)
    return None


def check_cures(answers: Answers) -> Wrong | None:
    given = _by_patient(answers, "cures", 'one setting by its name, such as {"dropout": 0.0}')
    for name, cure in given.items():
        wrong = _check_cure(name, cure)
        if wrong is not None:
            return wrong
    return None


def _check_cure(name: str, cure: Any) -> Wrong | None:
    expected = (
        f"one changed setting with which patient {name} gets {CURED:.0%} of the validation sums right"
    )
    if not isinstance(cure, dict) or len(cure) != 1:
        return Wrong(
            f"{brief(cure)} for patient {name}", expected, 'write {"name": value}, with one setting'
        )
    try:
        made = patient_spec(name, **cure)
        steps = made.training.epochs * math.ceil(
            len(made.task.splits(made.seed).train) / made.training.batch
        )
    except (LabError, TypeError) as error:
        return Wrong(
            f"{brief(cure)} for patient {name}: {error}", expected, "attnlab train addition --help"
        )
    if to_json(made) == to_json(patient_spec(name)):
        return Wrong(f"{brief(cure)}, which patient {name} has already", expected, "change the setting")
    if steps > STEPS:
        hint = "more epochs are not the cure: what is wrong with each step?"
        return Wrong(f"{steps:,} steps for patient {name}; at most {STEPS} are allowed", expected, hint)
    if to_json(made.task) != to_json(patient_spec(name).task):
        hint = "an easier task is not a cure; change the training or the model"
        return Wrong(f"{brief(cure)} for patient {name}, which changes the task", expected, hint)
    accuracy = valid_accuracy(train_once(made))
    if accuracy >= CURED:
        return None
    kinds = diagnose_spec(made).kinds
    now = f"the doctor now finds {kinds[0]}" if kinds else "the doctor finds nothing now"
    return Wrong(f"{brief(cure)} for patient {name}: {accuracy:.1%} right", expected, now)


def _by_patient(answers: Answers, name: str, called: str) -> dict[str, Any]:
    """What is said of each patient; the blanks of a dictionary are blanks."""
    given = answers.value(name, dict, f"a dictionary: of each patient {called}")
    for patient in SICK:
        answers.element(name, given, patient, called)
    for other in given:
        if other not in SICK:
            answers.refuse(f"a patient {other!r}{nearest(str(other), SICK)}", "the patients a, b and c")
    return {patient: given[patient] for patient in SICK}


EXERCISES = (
    Exercise(
        "first_loss", "the loss before the first step", "exercise 1, minutes 6 to 9", check_first_loss
    ),
    Exercise("decoder_input", "what a decoder is fed", "exercise 2, minutes 9 to 14", check_decoder_input),
    Exercise("loss", "which tokens count", "exercise 3, minutes 14 to 19", check_loss),
    Exercise(
        "leading_zero",
        "the accuracy of a decoder that says 0 first",
        "exercise 4, minutes 19 to 23",
        check_zero_first,
    ),
    Exercise("kinds", "three patients: what is wrong", "exercise 5, minutes 23 to 34", check_kinds),
    Exercise("cures", "three patients: what helps", "exercise 6, minutes 34 to 42", check_cures),
)
