"""What a run says about the machine it was made on, and what it says on another one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import SpecError
from attnlab.runs import Environment, create_run, describe_environment, environment, open_run, rounds_alike
from attnlab.storage import as_json
from attnlab.training import other_processor, train_run
from commands import attnlab
from tiny import TINY, tiny

CPUINFO = """processor\t: 0
model name\t: Fast One
flags\t\t: fpu avx2 fma avx512fancy sse4_1

processor\t: 1
model name\t: Slow One
"""


def test_the_processors_instructions_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "cpuinfo")
    for name in environment.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    found = describe_environment()
    assert found.processor == "Fast One"
    assert found.capabilities == {
        "torch": torch.backends.cpu.get_cpu_capability(),
        "instructions": ["sse4_1", "avx2", "fma"],
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }


def test_elsewhere_they_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "missing")
    assert (describe_environment().capabilities or {})["instructions"] == []
    assert describe_environment().processor


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({}, True),
        ({"processor": "another"}, False),
        ({"capabilities": {"torch": "AVX2", "instructions": []}}, False),
        ({"torch": "0.1"}, False),
        ({"device": "cuda:0"}, False),
        ({"python": "2.7", "commit": "0", "threads": 99, "cores": 99}, True),
    ],
)
def test_bytes_are_promised_on_one_machine(other: dict[str, Any], alike: bool) -> None:
    here = describe_environment()
    there = replace(here, **other)
    assert rounds_alike(there, here) is alike
    older = replace(there, capabilities=None)
    assert rounds_alike(older, here) is (alike or list(other) == ["capabilities"])


def stopped(path: Path) -> Path:
    """A run that was interrupted after four steps on another processor."""
    run, left = create_run(path, TINY), iter(range(100))
    assert train_run(run, stopping=lambda: next(left) == 4) is None
    run.write({"environment.json": as_json(replace(run.environment(), processor="Abacus").to_json())})
    return path


def test_a_run_resumed_on_another_processor_says_so(tmp_path: Path) -> None:
    path = stopped(tmp_path / "run")
    here = describe_environment()
    done = attnlab("train", "--resume", path, cwd=tmp_path)
    sentence = (
        f"{path} began on another machine, so its bytes may differ from an unbroken run: "
        f"processor was Abacus and is {here.processor}"
    )
    assert sentence in done.stderr.splitlines()
    found = open_run(str(path)).environment()
    assert found.processor == "Abacus"
    assert found.resumed_on == here.rounding
    assert list(here.rounding) == ["processor", "capabilities", "torch", "device"]


def test_a_run_resumed_where_it_began_says_nothing(tmp_path: Path) -> None:
    run, left = create_run(tmp_path / "run", tiny(epochs=2)), iter(range(100))
    train_run(run, stopping=lambda: next(left) == 4)
    assert other_processor(run) is None
    train_run(run)
    assert "resumed_on" not in run.environment().to_json()


def test_threads_that_decide_the_bytes_stay_with_the_run(tmp_path: Path) -> None:
    """Whatever is chosen later, a run goes on as it began."""
    run, left = create_run(tmp_path / "run", replace(TINY, seed=5)), iter(range(100))
    train_run(run, stopping=lambda: next(left) == 4)
    run.write({"environment.json": as_json(replace(run.environment(), chosen_threads=2).to_json())})
    seen: list[int] = []

    def look() -> bool:
        seen.append(torch.get_num_threads())
        return False

    train_run(run, stopping=look)
    assert set(seen) == {2}
    assert run.environment().chosen_threads == 2


@pytest.mark.parametrize("threads", [0, 1025])
def test_threads_that_no_machine_chooses_are_damage(threads: int) -> None:
    rule = "it.chosen_threads is .*, but it must be from 1 to 1024"
    with pytest.raises(SpecError, match=rule):
        Environment.from_json({"chosen_threads": threads})
