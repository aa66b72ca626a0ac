"""Lesson 1: what attention computes.

pattern = softmax over keys of q k^T / sqrt(K)      output = pattern v
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.course.answers import Answers
from attnlab.course.comparing import compare
from attnlab.course.feedback import Exercise, Wrong
from attnlab.course.measured import BLUR, shipped

QUERIES, KEYS, WIDTH, EXAMPLES = 5, 7, 11, 3
"""Different primes: swapped axes cannot go unnoticed."""
LENGTHS = (2, 5, 7)
SUM = "498+198"
CROSS = "decoder.0.cross"

ATTENTION = "softmax(q k^T / sqrt(K)) v, to 4 digits"
MASK = "True where the key stands at or before the query"
MANY = "what torch.nn.functional.multi_head_attention_forward gives, to 4 digits"


def _qkv(keys: int = KEYS) -> tuple[Tensor, Tensor, Tensor]:
    return (
        2 * torch.randn(EXAMPLES, QUERIES, WIDTH),
        2 * torch.randn(EXAMPLES, keys, WIDTH),
        torch.randn(EXAMPLES, keys, WIDTH),
    )


def check_attention(answers: Answers) -> Wrong | None:
    q, k, v = _qkv()
    got = answers.tensor_of("attention", "attention(q, k, v)", q, k, v, shape=tuple(q.shape))
    scores = q @ k.mT
    return compare(
        got,
        F.scaled_dot_product_attention(q, k, v),
        {
            "the softmax runs over the queries; the weights of one query over all keys must sum "
            "to 1, so take "
            "the softmax over the last axis": (scores / math.sqrt(WIDTH)).softmax(dim=-2) @ v,
            "the softmax runs over the examples; take it over the last axis, the keys": (
                (scores / math.sqrt(WIDTH)).softmax(dim=0) @ v
            ),
            "the scale is missing: divide the scores by the square root of the width of a query": (
                scores.softmax(dim=-1) @ v
            ),
            "the scores are divided by the width; divide by its square root": (
                (scores / WIDTH).softmax(dim=-1) @ v
            ),
            "the scores are multiplied by the square root of the width; divide by it": (
                (scores * math.sqrt(WIDTH)).softmax(dim=-1) @ v
            ),
            "the scale is the square root of the number of keys; it is that of the width of a query": (
                (scores / math.sqrt(KEYS)).softmax(dim=-1) @ v
            ),
            "the weights are applied to k; the output is a weighted mean of the values v": (
                (scores / math.sqrt(WIDTH)).softmax(dim=-1) @ k
            ),
            "the softmax is missing: scores have to become weights that sum to 1": (
                scores / math.sqrt(WIDTH) @ v
            ),
        },
        expected=ATTENTION,
        hint="compute scores, weights and output in three lines and compare each with the formula",
    )


def check_mask(answers: Answers) -> Wrong | None:
    for length in LENGTHS:
        shape = (length, length)
        got = answers.tensor_of("causal_mask", "causal_mask(length)", length, shape=shape)
        if got.dtype.is_floating_point and torch.isinf(got).any():
            hint = "return what may be seen as True and False; minus infinity comes in the next exercise"
            return Wrong("numbers with minus infinity", MASK, hint)
        seen, ones = got.bool(), torch.ones(shape, dtype=torch.bool)
        mistakes = {
            "off by one: a query must also see its own position, or the first one sees nothing": (
                ones.tril(-1)
            ),
            "off by one: every query sees one position too many, the token it has to predict": ones.tril(1),
            "rows and columns are exchanged: rows are queries, columns are keys": ones.triu(),
            "True and False are exchanged: True means that the key may be seen": ones.triu(1),
        }
        right = ones.tril()
        if not torch.equal(seen, right):
            hint = next((each for each, value in mistakes.items() if torch.equal(seen, value)), "")
            at = (seen != right).nonzero()[0].tolist()
            said = f"{bool(seen[tuple(at)])} for query {at[0]} and key {at[1]} at length {length}"
            return Wrong(said, MASK, hint or "write down the mask for length 3 by hand and compare")
    return None


def check_masked(answers: Answers) -> Wrong | None:
    q, k, v = _qkv()
    visible = torch.rand(QUERIES, KEYS) < 0.5
    visible[torch.arange(QUERIES), torch.randint(KEYS, (QUERIES,))] = True
    called = "masked_attention(q, k, v, visible)"
    got = answers.tensor_of("masked_attention", called, q, k, v, visible, shape=tuple(q.shape))
    scores = q @ k.mT / math.sqrt(WIDTH)
    weights = scores.softmax(dim=-1)
    return compare(
        got,
        F.scaled_dot_product_attention(q, k, v, attn_mask=visible),
        {
            "hidden weights are set to 0 after the softmax, so the others no longer sum to 1; "
            "hide the scores "
            "before the softmax": (weights * visible) @ v,
            "a score of 0 is not hidden: e^0 is 1; use minus infinity, whose exponential is 0": (
                (scores * visible).softmax(dim=-1) @ v
            ),
            "True means visible: here visible keys are hidden and hidden keys are seen": (
                scores.masked_fill(visible, -math.inf).softmax(dim=-1).nan_to_num() @ v
            ),
            "the mask has no effect": weights @ v,
            "the scale is missing under the mask": (
                (q @ k.mT).masked_fill(~visible, -math.inf).softmax(dim=-1) @ v
            ),
        },
        expected="attention over the visible keys alone, to 4 digits",
        hint="scores of hidden keys become minus infinity; then comes the softmax over the last axis",
    )


def check_heads(answers: Answers) -> Wrong | None:
    heads, width = 3, 15
    x = torch.randn(EXAMPLES, QUERIES, width)
    wq, wk, wv, wo = (torch.randn(width, width) / math.sqrt(width) * 1.5 for _ in range(4))
    called = "multi_head(x, wq, wk, wv, wo, heads)"
    got = answers.tensor_of("multi_head", called, x, wq, wk, wv, wo, heads, shape=tuple(x.shape))
    q, k, v = x @ wq, x @ wk, x @ wv
    each = width // heads

    def split(values: Tensor) -> Tensor:
        return values.view(EXAMPLES, QUERIES, heads, each).transpose(1, 2)

    def joined(z: Tensor) -> Tensor:
        return z.transpose(1, 2).reshape(EXAMPLES, QUERIES, width)

    right = joined(F.scaled_dot_product_attention(split(q), split(k), split(v))) @ wo
    cut = [values.reshape(EXAMPLES, heads, QUERIES, each) for values in (q, k, v)]
    wide = F.scaled_dot_product_attention(split(q), split(k), split(v), scale=1 / math.sqrt(width))
    mixed = F.scaled_dot_product_attention(split(q), split(k), split(v)).reshape(EXAMPLES, QUERIES, width)
    torn = F.scaled_dot_product_attention(cut[0], cut[1], cut[2])
    return compare(
        got,
        right,
        {
            "reshape to (examples, heads, queries, width) cuts through tokens; reshape to "
            "(examples, queries, "
            "heads, width) first, then transpose": torn.reshape(EXAMPLES, QUERIES, width) @ wo,
            "the same cut on the way in; the heads are joined well": joined(torn) @ wo,
            "scale by the square root of the width of one head, not of the model": joined(wide) @ wo,
            "transpose the heads back behind the queries before you join them": mixed @ wo,
            "the output projection wo is missing": joined(
                F.scaled_dot_product_attention(split(q), split(k), split(v))
            ),
            "this is one wide head: split q, k and v into heads": (
                F.scaled_dot_product_attention(q, k, v) @ wo
            ),
        },
        expected="heads that attend separately, joined side by side and multiplied by wo, to 4 digits",
        hint="check with heads=1 first: then it is attention(x wq, x wk, x wv) times wo",
    )


def check_sharpest(answers: Answers) -> Wrong | None:
    called = f"the name of a head of {CROSS}, in quotes"
    given = answers.value("sharpest_head", str, called)
    run = shipped("zoo:adder")
    pattern = torch.as_tensor(run.record(SUM, f"{CROSS}.pattern")[f"{CROSS}.pattern"])[0]
    most = pattern[:, 0].amax(dim=-1)
    names = [f"{CROSS}.{index}" for index in range(len(most))]
    if given not in names:
        return Wrong(repr(given), f"one of {', '.join(names)}", "heads count from 0")
    value, best = most[names.index(given)].item(), most.max().item()
    if value >= best - BLUR:
        return None
    columns = pattern.amax(dim=(-2, -1))
    hint = "read the first row of the pattern, that of the start token ⊢, head by head"
    if columns[names.index(given)] >= columns.max() - BLUR:
        hint = "this head is sharpest in another row; the first row is that of the start token ⊢"
    return Wrong(
        f"{given}, which puts at most {value:.2f} of its weight on one token in the first row",
        f"the head of {CROSS} that puts most weight on a single token there, {best:.2f}",
        hint,
    )


EXERCISES = (
    Exercise("attention", "scaled dot-product attention", "exercise 1, minutes 10 to 20", check_attention),
    Exercise("causal_mask", "what a decoder may see", "exercise 2, minutes 20 to 25", check_mask),
    Exercise(
        "masked_attention", "attention with hidden keys", "exercise 3, minutes 25 to 30", check_masked
    ),
    Exercise("multi_head", "several heads", "exercise 4, minutes 30 to 38", check_heads),
    Exercise("sharpest_head", "a head of a trained model", "exercise 5, minutes 38 to 43", check_sharpest),
)
