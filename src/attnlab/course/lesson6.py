"""Lesson 6: your own task: does it keep the rules, can it be guessed, is it learned, does it need
attention?
"""

import math
import random
from collections import Counter
from inspect import signature
from typing import Any

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import head_names, make_baseline
from attnlab.analysis.ablate.effects import ALL
from attnlab.analysis.subjects import load_subject
from attnlab.checks import check_task
from attnlab.course.answers import BLANK, NO_ERROR, Answers, running
from attnlab.course.feedback import Exercise, NotAnsweredError, Wrong
from attnlab.course.patients import train_once, valid_accuracy
from attnlab.errors import LabError, brief, nearest
from attnlab.front.run import Run
from attnlab.front.specs import spec
from attnlab.models import build_for
from attnlab.progress import silent
from attnlab.sets import Examples
from attnlab.specs import Task

SKILL, ENOUGH = 0.2, 0.95
"""By how much a trained model must be better than the best guess; enough in any case."""
NEAR = 0.02
"""How far a counted share may lie from the student's."""
STEPS, PARAMETERS = 1000, 100_000
"""A training that takes seconds has so many steps, and its model so many parameters, at most."""
EXAMPLES = 500
NEEDED = 0.1
"""What must be lost without all heads, if the task needs attention."""


def check_rules(answers: Answers) -> Wrong | None:
    try:
        _kept(answers)
    except NotAnsweredError as error:
        if error.wrong.expected != NO_ERROR:
            raise
        hint = "docs/howto/own-task.md lists the rules of a task"
        return Wrong(error.wrong.got, "a task that keeps the rules", hint)
    return None


def check_guess(answers: Answers) -> Wrong | None:
    given = answers.number("best_guess", "a share from 0 to 1")
    task = _kept(answers)
    right = _commonest(task.splits(0).valid)
    if abs(given - right) <= NEAR:
        return None
    hint = "count the rows of task.splits(0).valid.targets: the largest count over their number"
    if given > 1 and abs(given / 100 - right) <= NEAR:
        hint = "write a share from 0 to 1, not percent"
    elif abs(given - 1 / task.vocabulary) <= NEAR:
        hint = "one over the number of classes is right only if all answers are equally frequent; " + hint
    elif abs(1 - given - right) <= NEAR:
        hint = "this is the share that the most frequent answer gets wrong"
    expected = f"the share of validation examples that the most frequent answer gets right, {right:.3f}"
    return Wrong(f"{given:.3f}", expected, hint)


def check_learned(answers: Answers) -> Wrong | None:
    run = _trained(answers)
    accuracy, guess = valid_accuracy(run), _commonest(run.task.splits(0).valid)
    wanted = min(ENOUGH, guess + SKILL)
    if guess > ENOUGH - SKILL / 2:
        hint = (
            "make the answers more even: a model has little to learn where one answer is nearly always "
            "right"
        )
        return Wrong(
            f"a task whose most frequent answer is right for {guess:.1%}", "answers to be learned", hint
        )
    if accuracy >= wanted:
        return None
    hint = "train it yourself and look at run.metrics().plot(): does the loss still fall at the end?"
    kinds = run.diagnose().kinds
    if kinds:
        hint = f"the doctor finds {kinds[0]}: train it yourself and read attnlab doctor"
    said = f"{accuracy:.1%} right; the most frequent answer gets {guess:.1%}"
    return Wrong(said, f"at least {wanted:.1%} of the validation examples right", hint)


def check_needs(answers: Answers) -> Wrong | None:
    whole, without = without_heads(_trained(answers))
    if whole - without >= NEEDED:
        return None
    return Wrong(
        f"{without:.1%} right without any head, {whole:.1%} with all of them",
        f"a task of which at least {NEEDED:.0%} is lost without heads (their means in their place)",
        "such a task can be answered from each symbol by itself: make the answer depend on "
        "which symbols stand "
        "together, or in which order",
    )


def check_missed(answers: Answers) -> Wrong | None:
    run = _trained(answers)
    given = answers.function("most_missed", "most_missed(run)")(run)
    rows = run.ablate(baselines=["mean"], examples=EXAMPLES).singles
    lost = {name: row.lost[ALL] for name, row in rows.items()}
    if given not in lost:
        hint = "return a name as in run.ablate(...).singles"
        said = f"{brief(given)}, not a head of the model{nearest(str(given), lost)}"
        return Wrong(said, "the name of a head", hint)
    best = max(lost, key=lambda name: lost[name].value)
    if lost[given].value >= lost[best].ends[0]:
        return None
    hint = "of run.ablate(baselines=['mean'], examples=500).singles take what is lost of 'all examples'"
    if given == min(lost, key=lambda name: lost[name].value):
        hint = "this is the head that is missed least: take the largest loss, not the smallest"
    elif given == next(iter(lost)):
        hint = "this is the first head of the model, whatever it does; measure what is lost without each"
    return Wrong(
        f"{given}, without which {lost[given].value:.1%} of the answers are lost",
        f"a head without which as much is lost as without the most missed one, {lost[best].value:.1%}",
        hint,
    )


def without_heads(run: Run) -> tuple[float, float]:
    """The shares of right answers with all heads and without any, their means in their place."""
    subject = load_subject(run, split="valid", count=EXAMPLES)
    training = load_subject(run, split="train", count=EXAMPLES)
    heads = frozenset(head_names(run.model))
    mean = make_baseline("mean", training, training.examples, 0, lambda _: silent)
    found = evaluate_without(subject, [frozenset(), heads], mean)
    return found[frozenset()].exact_match, found[heads].exact_match


def measured_task(answers: Answers) -> dict[str, Any]:
    """What the exercises measure of a task, for the answer key."""
    run = _trained(answers)
    whole, without = without_heads(run)
    rows = run.ablate(baselines=["mean"], examples=EXAMPLES).singles
    return {
        "task": run.task.kind,
        "best_guess": _commonest(run.task.splits(0).valid),
        "accuracy": valid_accuracy(run),
        "with_heads": whole,
        "without_heads": without,
        "lost": {name: row.lost[ALL].value for name, row in rows.items()},
    }


def _kept(answers: Answers) -> Task:
    """The student's task, which keeps the rules."""
    kind = answers.value("my_task", type, "a function decorated with @al.task(...)")
    if not issubclass(kind, Task):
        hint = "put @al.task(symbols=..., classes=[...]) on the line above the function"
        raise NotAnsweredError(Wrong(f"the class {kind.__name__}", "a task", hint))
    draw = getattr(kind, "draw", None)
    with running(answers.path):
        if draw is not None and _is_blank(draw(random.Random(0), **_defaults(draw))):
            raise NotAnsweredError(Wrong("a blank in my_task", "an input and its answer", BLANK))
        task = kind()
        check_task(task)
    return task


def _is_blank(drawn: Any) -> bool:
    return (
        drawn is None or drawn is ... or (isinstance(drawn, tuple) and any(each is ... for each in drawn))
    )


def _defaults(draw: Any) -> dict[str, Any]:
    _, *parameters = signature(draw).parameters.values()
    return {each.name: each.default for each in parameters}


def _trained(answers: Answers) -> Run:
    """The student's task, trained with the student's settings, once."""
    task = _kept(answers)
    settings = answers.value("settings", dict, 'settings such as {"width": 32, "epochs": 4}')
    called = "settings of a training that takes seconds"
    try:
        made = spec(task, **{"seed": 0, "threads": 1, **settings})
        parameters = sum(each.numel() for each in build_for(made).parameters())
    except (LabError, TypeError) as error:
        hint = "a setting goes by the name of its flag: width, heads, layers, epochs, lr, train"
        raise NotAnsweredError(Wrong(f"{brief(settings)}: {error}", called, hint)) from error
    steps = made.training.epochs * math.ceil(len(made.task.splits(0).train) / made.training.batch)
    if steps > STEPS or parameters > PARAMETERS:
        raise NotAnsweredError(
            Wrong(
                f"{steps:,} steps of a model with {parameters:,} parameters",
                f"at most {STEPS:,} steps and {PARAMETERS:,} parameters",
                "set fewer epochs, fewer training examples (train) or a smaller width; if it cannot "
                "be learned "
                "like this, make the task easier: shorter inputs, fewer symbols",
            )
        )
    return train_once(made)


def _commonest(examples: Examples) -> float:
    """The share of the most frequent answer."""
    rows = Counter(str(each) for each in examples.targets.tolist())
    return max(rows.values()) / len(examples)


EXERCISES = (
    Exercise("my_task", "a task that keeps the rules", "exercise 1, minutes 6 to 20", check_rules),
    Exercise("best_guess", "what guessing gets", "exercise 2, minutes 20 to 24", check_guess),
    Exercise("settings", "a training that learns it", "exercise 3, minutes 24 to 32", check_learned),
    Exercise("needs_attention", "without any head", "exercise 4, minutes 32 to 35", check_needs),
    Exercise("most_missed", "which head is missed most", "exercise 5, minutes 35 to 41", check_missed),
)
