"""Lesson 4: positions and length: three encodings by their properties, a score that a constant answer
cannot have, and ``zoo:sorter`` beyond its training lengths.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.analysis.ablate.effects import ALL
from attnlab.course.answers import Answers
from attnlab.course.comparing import alike, compare
from attnlab.course.feedback import Exercise, Wrong
from attnlab.course.measured import BLUR, ablated, measured_heads, sorted_without
from attnlab.errors import nearest

LENGTH, WIDTH, HEADS = 7, 10, 5
BASE = 10_000
RUN, FAR = "zoo:sorter", 64
NEAR = 0.05
"""How far a measured share may lie from the student's."""
FAR_APART = 29
"""Places far beyond those of a short sequence."""


def check_sinusoidal(answers: Answers) -> Wrong | None:
    got = answers.tensor_of(
        "sinusoidal", "sinusoidal(length, width)", LENGTH, WIDTH, shape=(LENGTH, WIDTH)
    ).float()
    places, half = torch.arange(LENGTH)[:, None].double(), torch.arange(WIDTH // 2).double()

    def waves(exponent: Tensor, places: Tensor = places) -> Tensor:
        angles = places / BASE**exponent
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()

    right = waves(2 * half / WIDTH)
    return compare(
        got,
        right,
        {
            "these are the right waves, but all sines stand before all cosines; let them alternate": (
                torch.cat([right[:, ::2], right[:, 1::2]], dim=1)
            ),
            "sine and cosine are exchanged: even columns are sines": (
                torch.stack([right[:, 1::2], right[:, ::2]], dim=-1).flatten(1)
            ),
            "the exponent of pair i is 2i / width; here it is i / width": waves(half / WIDTH),
            "the exponent grows with the column; sine and cosine of a pair share it": _by_column(places),
            "places count from 0; yours begin with 1": waves(2 * half / WIDTH, places + 1),
            "the frequencies rise instead of falling: divide the place by the base's power": (
                waves(-2 * half / WIDTH)
            ),
        },
        expected="sin and cos of place / 10000^(2i / width) in the columns 2i and 2i + 1",
        hint="row 0 is 0, 1, 0, 1, ...; column 0 is the sine of the place itself",
    )


def _by_column(places: Tensor) -> Tensor:
    columns = torch.arange(WIDTH).double()
    angles = places / BASE ** (columns / WIDTH)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()


def check_rotate(answers: Answers) -> Wrong | None:
    called, places = "rotate(x, places)", torch.arange(LENGTH)
    q, k = torch.randn(LENGTH, WIDTH), torch.randn(LENGTH, WIDTH)

    def turned(x: Tensor, places: Tensor) -> Tensor:
        return answers.tensor_of("rotate", called, x.clone(), places, shape=tuple(x.shape)).float()

    expected = "vectors turned pair by pair by an angle that grows with their place"
    first = turned(q, torch.zeros(LENGTH, dtype=torch.long))
    if not alike(first, q):
        return Wrong(
            "a vector at place 0 that changes", expected, "the angle at place 0 is 0: nothing turns"
        )
    once = turned(q, places)
    if alike(once, q):
        return Wrong(
            "vectors that are the same at every place", expected, "multiply the angle by the place"
        )
    grown = (once.norm(dim=-1) - q.norm(dim=-1)).abs().max().item()
    if grown > 1e-3:
        hint = (
            "turning keeps lengths: (x, y) becomes (x cos a - y sin a, x sin a + y cos a); check "
            "the signs, and "
            "that both new values are made of the old ones"
        )
        return Wrong(f"a vector whose length changes by {grown:.3f}", expected, hint)
    here = (once * turned(k, places + 2)).sum(dim=-1)
    there = (turned(q, places + FAR_APART) * turned(k, places + FAR_APART + 2)).sum(dim=-1)
    if not alike(here, there, 2e-3):
        hint = (
            "the product of a query and a key may depend only on how far apart they stand: same angles "
            "for both"
        )
        moved = (here - there).abs().max().item()
        return Wrong(
            f"a product that changes by {moved:.3f} if both move on by {FAR_APART}", expected, hint
        )
    if _speeds(turned) == 1:
        hint = f"pair i turns by place / {BASE}^(2i / width), so pairs have different speeds"
        return Wrong("all pairs turn by the same angle", expected, hint)
    return None


def _speeds(turned: Callable[[Tensor, Tensor], Tensor]) -> int:
    """How many different angles unit vectors turn by from place 0 to place 1."""
    ones = torch.eye(WIDTH)  # a vector for each coordinate
    cosines = (turned(ones, torch.ones(WIDTH, dtype=torch.long)) * ones).sum(dim=-1)
    return len({round(each, 3) for each in cosines.tolist()})


def check_alibi(answers: Answers) -> Wrong | None:
    got = answers.tensor_of(
        "alibi", "alibi(heads, length)", HEADS, LENGTH, shape=(HEADS, LENGTH, LENGTH)
    ).float()
    places = torch.arange(LENGTH)
    offset = (places[None, :] - places[:, None]).float()
    slopes = 2.0 ** (-8 * torch.arange(1, HEADS + 1) / HEADS)
    early = 2.0 ** (-8 * torch.arange(HEADS) / HEADS)
    right = -slopes[:, None, None] * offset.abs()
    return compare(
        got,
        right,
        {
            "the sign: a key far away loses score, so the bias is negative": -right,
            "use the distance |i - j|: keys before and behind the query are alike here": (
                slopes[:, None, None] * offset
            ),
            "use the distance |i - j|; here keys behind the query gain": -slopes[:, None, None] * offset,
            "heads count from 1 in the slopes 2^(-8 h / H); yours count from 0": (
                -early[:, None, None] * offset.abs()
            ),
            "every head has a slope of its own": -offset.abs().expand(HEADS, -1, -1),
            "the slopes are powers of 2: 2^(-8 h / H)": (
                -(8 * torch.arange(1, HEADS + 1) / HEADS)[:, None, None] * offset.abs()
            ),
        },
        expected="-m_h |i - j| with m_h = 2^(-8 h / H), h = 1 .. H",
        hint="the diagonal is 0, and the row of head 1 at query 0 falls in equal steps",
    )


def check_balanced(answers: Answers) -> Wrong | None:
    called = "balanced_accuracy(predicted, truth)"
    truth = torch.tensor([1] * 54 + [0] * 46)[torch.randperm(100)]
    skilled = torch.where(torch.rand(100) < 0.7, truth, 1 - truth)
    for predicted in (torch.zeros_like(truth), torch.ones_like(truth), truth, skilled):
        given = answers.tensor_of("balanced_accuracy", called, predicted.clone(), truth.clone(), shape=())
        got, plain = given.item(), (predicted == truth).float().mean().item()
        shares = [(predicted == truth)[truth == each].float().mean().item() for each in (0, 1)]
        right, constant = sum(shares) / 2, len(set(predicted.tolist())) == 1
        if abs(got - right) <= 1e-4:
            continue
        kind = (
            f"a model that always answers {predicted[0].item()}" if constant else "a model with some skill"
        )
        expected = f"{right:.3f}: the mean of the shares of right answers within each class"
        hint = (
            "compute the share of right answers among the truths 0, that among the truths 1, and their mean"
        )
        if abs(got - plain) <= 1e-4:
            hint = (
                "this is plain accuracy, which rewards a constant answer as often as its class occurs; "
                + hint
            )
        elif abs(got - 100 * right) <= 1e-2:
            hint = "give a share from 0 to 1, not percent"
        elif not constant and abs(got - _precision(predicted, truth)) <= 1e-4:
            hint = "group by the truth, not by the prediction"
        return Wrong(f"{got:.3f} for {kind}", expected, hint)
    return None


def _precision(predicted: Tensor, truth: Tensor) -> float:
    shares = [(predicted == truth)[predicted == each].float().mean().item() for each in (0, 1)]
    return sum(shares) / 2


def check_next(answers: Answers) -> Wrong | None:
    given = answers.value("next_head", str, "the name of a head, in quotes")
    rows = {row.head: row.metrics["next"] for row in measured_heads(RUN).heads}
    if given not in rows:
        hint = f"not a head of {RUN}{nearest(given, list(rows))}"
        return Wrong(f"{given!r}, {hint}", "a head of the model", "")
    best = max(rows, key=lambda name: rows[name].value)
    if rows[given].value >= rows[best].value - BLUR:
        return None
    said = f"{given}, which puts {rows[given].value:.0%} of its weight on the next number"
    hint = "look at the column 'next' of attnlab heads zoo:sorter"
    lost = {name: row.lost[ALL].value for name, row in ablated(RUN, "zero").singles.items()}
    if max(lost, key=lambda name: lost[name]) == given:
        hint = "this head is the one that is missed most, which is another question; " + hint
    return Wrong(said, f"the head that puts most weight there, {rows[best].value:.0%}", hint)


def check_without(answers: Answers) -> Wrong | None:
    given = answers.number("without_it", "a share from 0 to 1")
    rows = measured_heads(RUN).heads
    best = max(rows, key=lambda row: row.metrics["next"].value).head
    measured, whole = sorted_without(FAR, best), sorted_without(FAR, "")
    expected = (
        f"the accuracy without {best}, zeros in its place, on lists of {FAR} numbers, half of "
        f"which have two "
        "neighbours exchanged"
    )
    if abs(given - measured) <= NEAR:
        return None
    hint = (
        f'use with run.without(head, to="zero"): and run.lengths(lengths="{FAR}", negatives="swap") inside'
    )
    if given > 1 and abs(given / 100 - measured) <= NEAR:
        hint = "write a share from 0 to 1, not percent"
    elif abs(given - whole) <= NEAR:
        hint = "this is the accuracy with all heads; " + hint
    elif abs(given - (whole - measured)) <= NEAR:
        hint = "this is what is lost; the exercise asks for the accuracy that is left"
    return Wrong(f"{given:.3f}", expected, hint)


EXERCISES = (
    Exercise("sinusoidal", "waves for places", "exercise 1, minutes 8 to 14", check_sinusoidal),
    Exercise(
        "rotate", "rotary positions, by their properties", "exercise 2, minutes 14 to 20", check_rotate
    ),
    Exercise("alibi", "a bias that grows with distance", "exercise 3, minutes 20 to 25", check_alibi),
    Exercise(
        "balanced_accuracy",
        "no reward for a constant answer",
        "exercise 4, minutes 28 to 33",
        check_balanced,
    ),
    Exercise("next_head", "the head that compares neighbours", "exercise 5, minutes 33 to 37", check_next),
    Exercise("without_it", "64 numbers without this head", "exercise 6, minutes 37 to 42", check_without),
)
