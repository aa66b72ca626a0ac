from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import InputError, shortened
from attnlab.problems.addition import Addition
from attnlab.problems.addition.task import END, PAD, PLUS, START, SYMBOLS, VOCABULARY

Order = Literal["most", "least"]
Operands = Literal["full", "reference"]


def task_of(digits: int, order: Order = "most", operands: Operands = "full") -> Addition:
    return Addition(digits=digits, order=order, operands=operands, train=1, valid=1, test=1)


@st.composite
def sums(draw: st.DrawFn) -> tuple[Addition, int, int]:
    """A task and two operands in its range, often such that carries ripple."""
    orders: list[Order] = ["most", "least"]
    ranges: list[Operands] = ["full", "reference"]
    digits = draw(st.integers(1, 12))
    task = task_of(digits, draw(st.sampled_from(orders)), draw(st.sampled_from(ranges)))
    low, high = task.operand_range
    operand = st.integers(low, high)
    a = draw(operand)
    b = draw(operand | st.integers(-1, 1).map(lambda extra: min(max(high - a + extra, low), high)))
    return task, a, b


def spell(number: int, places: int, order: Order) -> list[int]:
    digits = [int(digit) for digit in str(number).zfill(places)]
    return digits if order == "most" else digits[::-1]


def slow_carries(a: int, b: int, digits: int) -> list[bool]:
    """Adding by hand, from the right."""
    carry, sent = 0, []
    for column in range(digits):
        total = int(str(a).zfill(digits)[-1 - column]) + int(str(b).zfill(digits)[-1 - column]) + carry
        carry = total // 10
        sent.append(carry == 1)
    return sent


def longest_run(flags: list[bool]) -> int:
    return max(len(run) for run in "".join(" x"[flag] for flag in flags).split(" "))


@given(sums())
def test_tokens_against_python_integers(case: tuple[Addition, int, int]) -> None:
    task, a, b = case
    n, order = task.digits, task.order
    pairs = torch.tensor([[a, b], [b, a]])
    source, target = task.source(pairs), task.target(pairs)
    assert source[0].tolist() == [*spell(a, n, order), PLUS, *spell(b, n, order)]
    assert source[1].tolist() == [*spell(b, n, order), PLUS, *spell(a, n, order)]
    assert target[0].tolist() == target[1].tolist() == [*spell(a + b, n + 1, order), END]
    assert (source.shape[1], target.shape[1]) == (2 * n + 1, task.target_length)
    assert task.answer(target[0]) == str(a + b)


@given(sums())
def test_carries_and_chains_against_adding_by_hand(case: tuple[Addition, int, int]) -> None:
    task, a, b = case
    pairs = torch.tensor([[a, b], [0, 0]])
    slow = slow_carries(a, b, task.digits)
    assert task.carries(pairs).tolist() == [slow, [False] * task.digits]
    assert task.chains(pairs).tolist() == [longest_run(slow), 0]


def test_chain_by_hand() -> None:
    pairs = torch.tensor([[999, 1], [105, 995], [909, 191], [500, 500], [123, 456]])
    assert task_of(3).chains(pairs).tolist() == [3, 3, 3, 1, 0]
    assert task_of(3).chains(torch.tensor([[909, 101]])).tolist() == [1]
    assert task_of(3).carries(torch.tensor([[909, 101]])).tolist() == [[True, False, True]]


@given(sums())
def test_decoder_input_is_the_target_shifted(case: tuple[Addition, int, int]) -> None:
    task, a, b = case
    pairs = torch.tensor([[a, b]])
    examples = task.examples(pairs)
    source, shifted = examples.inputs
    assert torch.equal(source, task.source(pairs))
    assert shifted[0].tolist() == [START, *task.target(pairs)[0, :-1].tolist()]
    assert torch.equal(examples.targets, task.target(pairs))
    assert task.start == START


def test_special_tokens_are_no_digits() -> None:
    special = {PLUS, PAD, START, END}
    assert special | set(range(10)) == set(range(VOCABULARY))
    assert len(special) == 4
    assert len(set(SYMBOLS)) == VOCABULARY == Addition.vocabulary
    assert SYMBOLS[:10] == tuple("0123456789")
    assert SYMBOLS[PLUS] == "+"


def test_symbols() -> None:
    assert task_of(1).symbols(torch.tensor([0, 9, PLUS, PAD, START, END])) == list("09+·⊢⊣")


@pytest.mark.parametrize(
    ("order", "names"),
    [("most", ["10^2", "10^1", "10^0", "end"]), ("least", ["10^0", "10^1", "10^2", "end"])],
)
def test_column_names_follow_the_order(order: Order, names: list[str]) -> None:
    assert task_of(2, order).places() == names


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([0, 0, 7, END], "7"),
        ([0, 0, 0, END], "0"),
        ([1, 9, 8, END], "198"),
        ([1, 9, 8, 8], "1988"),
        ([1, END, 8, END], "1⊣8⊣"),
        ([1, PLUS, 8, END], "1+8⊣"),
        ([START, 9, PLUS, END], "⊢9+⊣"),
        ([PAD, 1, 1, END], "·11⊣"),
    ],
)
def test_answer(tokens: list[int], text: str) -> None:
    assert task_of(2).answer(torch.tensor(tokens)) == text


def test_answer_that_starts_with_the_ones() -> None:
    assert task_of(2, "least").answer(torch.tensor([8, 9, 1, END])) == "198"
    assert task_of(2, "least").answer(torch.tensor([8, 9, 1, 0])) == "8910"


@pytest.mark.parametrize("text", ["374+14", " 374 + 014\n", "00374+14", "0" * 5000 + "374+14"])
def test_parse(text: str) -> None:
    assert task_of(3).read_operands(text) == (374, 14)


def test_parse_reads_its_own_operands_at_the_edges() -> None:
    assert task_of(3, operands="reference").read_operands("100+999") == (100, 999)
    assert task_of(12).read_operands("0+999999999999") == (0, 10**12 - 1)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^the line is empty; write a sum such as 374\+814$"):
        task_of(3).read_operands(text)


@pytest.mark.parametrize("text", ["374", "374+", "+1", "1+2+3", "a+b", "-1+2", "1.5+2", "1 2+3", "374-814"])
def test_no_sum(text: str) -> None:
    with pytest.raises(InputError) as caught:
        task_of(3).read_operands(f" {text} ")
    assert str(caught.value) == f"{text!r} is not a sum of two numbers; write it as 374+814"


@pytest.mark.parametrize(
    ("operands", "text", "number", "interval"),
    [
        ("full", "5+1000", "1000", "0 to 999"),
        ("reference", "99+100", "99", "100 to 999"),
        ("reference", "100+5", "5", "100 to 999"),
        ("full", "1+" + "9" * 5000, "9" * 5000, "0 to 999"),
    ],
)
def test_operand_outside_the_range(operands: Operands, text: str, number: str, interval: str) -> None:
    with pytest.raises(InputError) as caught:
        task_of(3, operands=operands).read_operands(text)
    said = f"{shortened(number, 200)} is outside {interval}, the operands that this model has learned"
    assert str(caught.value) == said
