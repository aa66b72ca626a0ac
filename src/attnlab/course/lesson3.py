"""Lesson 3: does attention explain? Two patterns with one output, rollout, occlusion, deletion curves, and
what methods say of one sum.
"""

from collections.abc import Callable, Mapping
from typing import final

import torch
from torch import Tensor

from attnlab.course.answers import Answers
from attnlab.course.comparing import compare
from attnlab.course.feedback import Exercise, Wrong
from attnlab.course.measured import explained

KEYS, WIDTH, LENGTH, SYMBOLS, HEADS = 7, 3, 5, 11, 2
LAYERS = 3
BLANK = 0
SUM, PLACE = "498+198", "10^2"
"""The sum that is explained, and the digit of its answer that is asked about: the hundreds."""
APART = 0.05
"""By how much two patterns have to differ, summed over keys."""
CLOSE = 1e-3
TIE = 0.02
"""Parts whose scores differ by less than this share of the largest are equally important."""


def check_another(answers: Answers) -> Wrong | None:
    a, v = torch.randn(KEYS).softmax(dim=0), torch.randn(KEYS, WIDTH)
    got = answers.tensor_of(
        "another_pattern", "another_pattern(a, v)", a.clone(), v.clone(), shape=(KEYS,)
    ).float()
    expected = (
        f"weights at least 0 with the sum 1 and the output of a, that differ from a by {APART} or more"
    )
    if (got < -1e-6).any():
        hint = "go only so far in the free direction that the first weight reaches 0"
        return Wrong(f"a weight of {got.min().item():.3f}", expected, hint)
    if abs(got.sum().item() - 1) > CLOSE:
        hint = (
            "add a row of ones to v: directions that keep v's sums and this row's keep the sum of weights"
        )
        return Wrong(f"weights with the sum {got.sum().item():.3f}", expected, hint)
    moved = (got @ v - a @ v).abs().max().item()
    if moved > CLOSE:
        hint = (
            "the direction must give zero when multiplied by v: a direction of the null space of v "
            "transposed"
        )
        return Wrong(f"an output that differs by up to {moved:.3f}", expected, hint)
    if (got - a).abs().sum() < APART:
        hint = "this is a itself, or nearly so: go farther in the free direction"
        return Wrong(f"a pattern that differs by {(got - a).abs().sum().item():.4f}", expected, hint)
    return None


def check_rollout(answers: Answers) -> Wrong | None:
    patterns = [(2 * torch.randn(HEADS, LENGTH, LENGTH)).softmax(dim=-1) for _ in range(LAYERS)]
    given = [each.clone() for each in patterns]
    got = answers.tensor_of("rollout", "rollout(patterns)", given, shape=(LENGTH, LENGTH))
    eye = torch.eye(LENGTH)
    means = [each.mean(dim=0) for each in patterns]
    halves = [each / 2 + eye / 2 for each in means]
    most = [(each.amax(dim=0) + eye) for each in patterns]
    return compare(
        got,
        _chain(halves),
        {
            "the layers are multiplied in the wrong order: the last layer stands on the left": (
                _chain(halves[::-1])
            ),
            "the residual connection is missing: mix each pattern with the identity, half and half": _chain(
                means
            ),
            "identity and pattern are added but not halved, so that rows no longer sum to 1": (
                _chain([2 * each for each in halves])
            ),
            "take the mean over heads; this is their maximum": (
                _chain([each / each.sum(dim=-1, keepdim=True) for each in most])
            ),
            "patterns are multiplied number by number; the product of layers is the matrix product": (
                halves[2] * halves[1] * halves[0]
            ),
            "this is the last layer alone": halves[-1],
            "this is a mean over layers; information passes through one layer after the other": (
                torch.stack(halves).mean(dim=0)
            ),
        },
        expected="(A_3/2 + I/2) (A_2/2 + I/2) (A_1/2 + I/2), with A the mean over the heads of a layer",
        hint="begin with the identity and multiply each layer from the left; every row keeps the sum 1",
    )


def _chain(layers: list[Tensor]) -> Tensor:
    """The last layer on the left."""
    product = torch.eye(LENGTH)
    for each in layers:
        product = each @ product
    return product


@final
class Judge:
    """A made-up model: the evidence for an answer given tokens, in which tokens act together."""

    def __init__(self) -> None:
        self.alone = torch.randn(LENGTH, SYMBOLS)
        self.together = torch.randn(LENGTH, LENGTH) / 3

    def __call__(self, tokens: Tensor) -> Tensor:
        each = self.alone[torch.arange(LENGTH), tokens]
        return each.sum() + each @ self.together @ each


def check_occlusion(answers: Answers) -> Wrong | None:
    f, tokens = Judge(), torch.randint(1, SYMBOLS, (LENGTH,))
    called = "occlusion(f, tokens, blank)"
    got = answers.tensor_of("occlusion", called, f, tokens.clone(), BLANK, shape=(LENGTH,)).float()
    single = torch.stack([f(_without(tokens, [at])) for at in range(LENGTH)])
    growing = torch.stack([f(_without(tokens, list(range(at + 1)))) for at in range(LENGTH)])
    only = [[other for other in range(LENGTH) if other != at] for at in range(LENGTH)]
    return compare(
        got,
        f(tokens) - single,
        {
            "the sign: a token that supports the answer has a positive score, f(tokens) less "
            "f(without it)": (single - f(tokens)),
            "this is what is left without each token; the score is how much that is less than "
            "before": single,
            "tokens that were taken away stay away: work on a copy (tokens.clone()) for each": (
                f(tokens) - growing
            ),
            "this keeps one token alone; take one token away": f(tokens)
            - torch.stack([f(_without(tokens, each)) for each in only]),
            "the sizes are right, the signs are lost: leave abs() out": (f(tokens) - single).abs(),
        },
        expected="of each position f(tokens) less f with the blank at this position alone",
        hint="replace position 0 by the blank by hand and compare the first number",
    )


def check_deletion(answers: Answers) -> Wrong | None:
    f, tokens, scores = Judge(), torch.randint(1, SYMBOLS, (LENGTH,)), torch.randn(LENGTH)
    called = "deletion_curve(f, tokens, scores, blank)"
    given = (f, tokens.clone(), scores.clone(), BLANK)
    got = answers.tensor_of(
        "deletion_curve",
        called,
        *given,
        shape=(LENGTH + 1,),
        hints={
            (LENGTH,): "the curve has a point more than there are tokens: begin with f before any deletion"
        },
    ).float()
    order = scores.argsort(descending=True).tolist()

    def curve(order: list[int]) -> Tensor:
        return torch.stack([f(_without(tokens, order[:gone])) for gone in range(LENGTH + 1)])

    alone = torch.stack([f(tokens), *(f(_without(tokens, [at])) for at in order)])
    kept = torch.stack([f(_without(tokens, order[gone:])) for gone in range(LENGTH + 1)])
    return compare(
        got,
        curve(order),
        {
            "the least important tokens go first here; a deletion curve begins with the most important": (
                curve(order[::-1])
            ),
            "every point has one token less than the point before it; here each token is deleted "
            "alone": alone,
            "tokens go from left to right here; go by their scores": curve(list(range(LENGTH))),
            "this is the insertion curve: it begins with everything deleted": kept,
            "this is the insertion curve, read backwards": kept.flip(0),
            "the most important by size went first; scores against the answer have a sign": (
                curve(scores.abs().argsort(descending=True).tolist())
            ),
        },
        expected="f after 0, 1, 2, ... deletions, those with the highest scores first",
        hint="the first point is f(tokens), the last is f of blanks alone",
    )


def _without(tokens: Tensor, positions: list[int]) -> Tensor:
    cut = tokens.clone()
    cut[positions] = BLANK
    return cut


def check_top(name: str, method: str, other: str) -> Callable[[Answers], Wrong | None]:
    """The part of the input that ``method`` finds most important; ``other`` is what it is often taken
    for.
    """

    def check(answers: Answers) -> Wrong | None:
        parts, scores = explained("zoo:adder", SUM, PLACE)
        given = answers.number(name, f"a number from 0 to {len(parts) - 1}")
        if given != int(given) or not 0 <= given < len(parts):
            said = f"{given:g}"
            return Wrong(
                said, f"the position of one of the parts {' '.join(parts)}", "positions count from 0"
            )
        at, sizes = int(given), _sizes(scores, method)
        best = max(range(len(parts)), key=lambda each: sizes[each])
        expected = (
            f"the position of the part with the largest score of {method}, which is {sizes[best]:.3f}"
        )
        if sizes[at] >= sizes[best] * (1 - TIE):
            return None
        said = f"{at}, the part {parts[at]}, with a score of {sizes[at]:.3f}"
        others = _sizes(scores, other)
        hint = f"look at the column of {method} in attnlab explain zoo:adder {SUM} --place {PLACE}"
        if others[at] >= max(others) * (1 - TIE):
            hint = f"this is what {other} says; " + hint
        elif at and sizes[at - 1] >= sizes[best] * (1 - TIE):
            hint = "positions count from 0, so yours is one too large"
        return Wrong(said, expected, hint)

    return check


def _sizes(scores: Mapping[str, list[float]], method: str) -> list[float]:
    return [abs(each) for each in scores[method]]


EXERCISES = (
    Exercise("another_pattern", "two patterns, one output", "exercise 1, minutes 8 to 16", check_another),
    Exercise("rollout", "attention through all layers", "exercise 2, minutes 16 to 22", check_rollout),
    Exercise("occlusion", "what is lost without a token", "exercise 3, minutes 22 to 28", check_occlusion),
    Exercise("deletion_curve", "a test of an explanation", "exercise 4, minutes 28 to 34", check_deletion),
    Exercise(
        "attention_top",
        "what attention calls most important",
        "exercise 5, minutes 34 to 39",
        check_top("attention_top", "attention", "occlusion"),
    ),
    Exercise(
        "occlusion_top",
        "what occlusion calls most important",
        "exercise 5, minutes 34 to 39",
        check_top("occlusion_top", "occlusion", "attention"),
    ),
)
