"""Batches beside each other: in order, few at a time, the same whatever the number of threads."""

import threading
from collections.abc import Iterator

import pytest
import torch

from attnlab.analysis.parallel import in_order


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_and_few_items_are_held(threads: int) -> None:
    drawn: list[int] = []
    returned: list[int] = []

    def items() -> Iterator[int]:
        for number in range(23):
            assert number - len(returned) <= threads
            drawn.append(number)
            yield number

    for square in in_order(lambda number: number**2, items()):
        returned.append(square)
    assert returned == [number**2 for number in range(23)]
    assert len(drawn) == 23
    assert torch.get_num_threads() == threads


def test_each_worker_has_one_thread_and_no_gradients(threads: int) -> None:
    weight = torch.ones(3, requires_grad=True)

    def look(number: int) -> tuple[int, bool, str]:
        return torch.get_num_threads(), (weight * number).requires_grad, threading.current_thread().name

    found = list(in_order(look, range(11)))
    assert {(count, learns) for count, learns, _ in found} == {(1, False)}
    assert len({name for *_, name in found}) <= threads


def test_what_work_raises_is_raised(threads: int) -> None:
    def work(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    found = in_order(work, range(100))
    assert [next(found) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match=r"^seven$"):
        next(found)
    assert torch.get_num_threads() == threads


def test_nothing_to_do() -> None:
    assert list(in_order(str, [])) == []
