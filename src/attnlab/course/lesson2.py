"""Lesson 2: heads and what they do, on ``zoo:adder``: where heads look, what is lost without them, which
can go together.
"""

import math

import torch

from attnlab.analysis.ablate.effects import ALL, Single
from attnlab.course.answers import Answers
from attnlab.course.comparing import compare
from attnlab.course.feedback import Exercise, Wrong
from attnlab.course.measured import BLUR, ablated, accuracy_without, measured_heads
from attnlab.errors import nearest

RUN = "zoo:adder"
HEADS, QUERIES, KEYS = 3, 5, 7
POINT = 0.01
"""A head is harmless if fewer answers than this share are lost without it."""
SHARP = 0.7
"""A head above this sparsity looks at few keys."""
NEAR = 0.02
"""How far a measured share may lie from the student's."""
FEWEST, KEPT = 12, 0.9
"""So many heads have to go, and this share of the answers must stay right."""


def check_entropy(answers: Answers) -> Wrong | None:
    scores = 3 * torch.randn(HEADS, QUERIES, KEYS)
    pattern = scores.softmax(dim=-1)
    pattern[0, 0] = torch.eye(KEYS)[2]
    got = answers.tensor_of("entropy", "entropy(pattern)", pattern, shape=(HEADS, QUERIES))
    safe = torch.special.entr(pattern)
    right = safe.sum(dim=-1) / math.log(KEYS)
    raw = (-pattern * pattern.log()).sum(dim=-1) / math.log(KEYS)
    if torch.isnan(got).any() and torch.isnan(raw).any():
        return Wrong(
            "nan for a row that has all its weight on one key",
            "0 for such a row",
            "0 log 0 counts as 0: use torch.special.entr, or replace nan by 0 before you sum",
        )
    return compare(
        got,
        right,
        {
            "the sign: entropy is minus the sum of a ln a": -right,
            "divide by the largest possible value, ln of the number of keys, so that uniform "
            "attention has 1": (right * math.log(KEYS)),
            "this is in bits; divide by the largest possible value in the same unit": (
                right * math.log2(KEYS)
            ),
            "sum over the keys of a row; dividing by their number makes it a mean": right
            / KEYS
            * math.log(KEYS),
            "this is divided by the number of keys; divide by its logarithm": right / KEYS,
        },
        expected="minus the sum over keys of a ln a, divided by ln of the number of keys",
        hint=(
            "try it on a row with 1/n everywhere, which must give 1, and on one with a single 1, which "
            "gives 0"
        ),
    )


def check_weight(answers: Answers) -> Wrong | None:
    pattern = (2 * torch.randn(HEADS, QUERIES, KEYS)).softmax(dim=-1)
    keys = torch.rand(QUERIES, KEYS) < 0.4
    keys[:, 3] = True
    got = answers.tensor_of("weight_on", "weight_on(pattern, keys)", pattern, keys, shape=(HEADS,))
    chosen = pattern * keys
    return compare(
        got,
        chosen.sum(dim=-1).mean(dim=-1),
        {
            "sum the weights on the chosen keys of a row; a mean over all keys makes them smaller": (
                chosen.mean(dim=(-2, -1))
            ),
            "sum over the keys of a row, then take the mean over the rows; this sums over both": (
                chosen.sum(dim=(-2, -1))
            ),
            "divide by the number of rows, not by the number of chosen keys": (
                chosen.sum(dim=(-2, -1)) / keys.sum()
            ),
            "this is the weight on all other keys": 1 - chosen.sum(dim=-1).mean(dim=-1),
        },
        expected="of each head the mean over rows of the weight on the keys that are True",
        hint="if every key is chosen, the answer is 1 for every head",
    )


def check_partner(answers: Answers) -> Wrong | None:
    given = answers.value("partner_head", str, "the name of a head, in quotes")
    rows = {row.head: row for row in measured_heads(RUN).heads}
    if given not in rows:
        return _unknown(given, list(rows))
    known = {name: row.metrics["partner"] for name, row in rows.items() if "partner" in row.metrics}
    best = max(known, key=lambda name: known[name].value)
    expected = (
        f"the head of the encoder that puts most weight on the other operand's digit of its own column, "
        f"{known[best].value:.0%}"
    )
    if given not in known:
        return Wrong(
            given, expected, "this one is a head of the decoder, whose rows are tokens of the answer"
        )
    if known[given].value >= known[best].value - BLUR:
        return None
    flat = known[given].uniform
    return Wrong(
        f"{given}, which puts {known[given].value:.0%} there; uniform attention puts {flat:.0%}",
        expected,
        "look at the column 'partner' of attnlab heads zoo:adder, in the table of encoder self",
    )


def check_missed(answers: Answers) -> Wrong | None:
    given = answers.value("most_missed", str, "the name of a head, in quotes")
    rows = ablated(RUN).singles
    if given not in rows:
        return _unknown(given, list(rows))
    best = max(rows.values(), key=_lost)
    if _reaches(rows[given], best):
        return None
    hint = "rank the heads by what is lost towards mean, in attnlab ablate zoo:adder --baselines mean"
    looks = {row.head: row.metrics["sparsity"].value for row in measured_heads(RUN).heads}
    if looks[given] >= SHARP:
        hint = "this head looks sharply at few keys, but that does not say that it is needed; " + hint
    return Wrong(
        f"{given}, without which {_lost(rows[given]):.1%} of the answers are lost",
        f"a head without which as much is lost as without the most missed one, {_lost(best):.1%}",
        hint,
    )


def check_harmless(answers: Answers) -> Wrong | None:
    given = set(answers.names("harmless", "a list of names of heads"))
    rows = ablated(RUN).singles
    for name in sorted(given):
        if name not in rows:
            return _unknown(name, list(rows))
    wrong = [name for name in rows if name in given and _lost(rows[name]) >= POINT + BLUR]
    missing = [name for name in rows if name not in given and _lost(rows[name]) < POINT - BLUR]
    expected = f"every head without which less than 1 point is lost, and no other, of {len(rows)} heads"
    if wrong:
        said = (
            f"{wrong[0]} is in the list, and without it {_lost(rows[wrong[0]]):.1%} of the answers are lost"
        )
        return Wrong(said, expected, "a point is 1% of all examples: compare what is lost with 0.01")
    if missing:
        count = f"{len(missing)} such heads are" if len(missing) > 1 else "one such head is"
        loss = _lost(rows[missing[0]])
        hint = "a head may cost a little, or even less than nothing: 'less than 1 point' includes these"
        return Wrong(f"{count} not in the list, among them {missing[0]} ({loss:.1%})", expected, hint)
    return None


def check_together(answers: Answers) -> Wrong | None:
    given = answers.number("together", "a share from 0 to 1")
    rows = ablated(RUN).singles
    heads = frozenset(name for name, row in rows.items() if _lost(row) < POINT)
    measured = accuracy_without(RUN, heads)
    expected = (
        f"the share of validation answers that stay right without all {len(heads)} harmless heads at once"
    )
    if abs(given - measured) <= NEAR:
        return None
    if abs(given / 100 - measured) <= NEAR and given > 1:
        return Wrong(f"{given:g}", expected, "write a share from 0 to 1, not percent")
    added = 1 - sum(_lost(rows[name]) for name in heads)
    if abs(given - added) <= NEAR:
        hint = "what the heads cost one by one does not add up: take them out together and measure"
    elif abs(1 - given - measured) <= NEAR:
        hint = "this is the share that is lost; the exercise asks for the share that stays right"
    else:
        hint = "use with run.without(*harmless, to='mean'): and run.evaluate(split='valid') inside"
    return Wrong(f"{given:.3f}", expected, hint)


def check_removed(answers: Answers) -> Wrong | None:
    given = frozenset(answers.names("removed", "a list of names of heads"))
    rows = ablated(RUN).singles
    for name in sorted(given):
        if name not in rows:
            return _unknown(name, list(rows))
    expected = (
        f"at least {FEWEST} heads without which at least {KEPT:.0%} of the validation answers stay right"
    )
    if len(given) < FEWEST:
        return Wrong(f"{len(given)} different heads", expected, "go on with your list, one head at a time")
    kept = accuracy_without(RUN, given)
    if kept >= KEPT:
        return None
    hint = (
        "take out one head more at a time, always the one without which most stays right "
        "together with those "
        "that are out already"
    )
    if all(_lost(rows[name]) < POINT for name in given):
        hint = "each of these heads is harmless alone; they stand in for each other. So " + hint
    return Wrong(f"{len(given)} heads, without which {kept:.1%} stay right", expected, hint)


def _lost(row: Single) -> float:
    return row.lost[ALL].value


def _reaches(row: Single, best: Single) -> bool:
    """Whether it may be this head as well: what is lost lies within the interval of the most missed one."""
    return _lost(row) >= best.lost[ALL].ends[0]


def _unknown(given: str, known: list[str]) -> Wrong:
    return Wrong(f"{given!r}, not a head of {RUN}{nearest(given, known)}", "a head of the model", "")


EXERCISES = (
    Exercise("entropy", "how sharp a head is", "exercise 1, minutes 8 to 14", check_entropy),
    Exercise(
        "weight_on", "how much weight a set of keys gets", "exercise 2, minutes 14 to 20", check_weight
    ),
    Exercise(
        "partner_head", "the head that pairs the digits", "exercise 3, minutes 20 to 24", check_partner
    ),
    Exercise("most_missed", "the head that is missed most", "exercise 4, minutes 24 to 29", check_missed),
    Exercise("harmless", "heads that nobody misses", "exercise 5, minutes 29 to 32", check_harmless),
    Exercise("together", "all of them at once", "exercise 6, minutes 32 to 36", check_together),
    Exercise("removed", "a set that can go", "exercise 7, minutes 36 to 43", check_removed),
)
