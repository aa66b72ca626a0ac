"""How many cores are free, and how idle threads wait."""

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from attnlab import cores

STAT = """cpu  9 9 9 9 9 9 9 9 9 9
cpu0 {user} 10 20 999 999 3 4 5 900 900
cpu1 100 0 0 999 0 0 0 0 0 0
cpu2 70000 0 0 0 0 0 0 0 0 0
intr 1 2 3
"""


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cores 0 and 1 are ours; what the first has done can be written."""
    path = tmp_path / "stat"
    monkeypatch.setattr(cores, "_STAT", path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    return path


def test_work_of_our_cores_is_counted(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    monkeypatch.setattr(time, "monotonic", lambda: 30.0)
    stat.write_text(STAT.format(user=1))
    # 1 + 10 + 20 and 3 + 4 + 5 of the first, 100 of the second; neither idle time nor guests
    assert cores.read_load() == cores.Load(frozenset({0, 1}), at=30.0, everybody=1.43, own=7.0)


def test_what_others_take_is_what_we_do_not(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat.write_text(STAT.format(user=801))
    monkeypatch.setattr(time, "process_time", lambda: 9.0)
    monkeypatch.setattr(time, "monotonic", lambda: 34.0)
    before = cores.Load(frozenset({0, 1}), at=30.0, everybody=1.43, own=7.0)
    assert cores.taken_since(before) == pytest.approx((8 - 2) / 4)


@pytest.mark.parametrize("text", ["cpu0 1 2\ncpu1 1\n", "cpu0 a b c d e f\n", None])
def test_where_the_system_does_not_say_nothing_is_taken(text: str | None, stat: Path) -> None:
    if text is not None:
        stat.write_text(text)
    assert cores.read_load() is None
    assert cores.taken_since(None) == 0.0


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux says what its cores do")
def test_a_busy_neighbour_is_seen() -> None:
    """Its share depends on what else runs here, but it is more than nothing."""
    before = cores.read_load()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        time.sleep(1.0)
        taken = cores.taken_since(before)
        neighbour.kill()
    assert taken > 0.1


def python(code: str, **settings: str) -> str:
    """What ``code`` prints in a Python of its own, without settings about waiting but ``settings``."""
    kept = {name: value for name, value in os.environ.items() if name not in cores.WAITING}
    kept.pop("OMP_NUM_THREADS", None)
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(
        command, env={**kept, **settings}, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout + done.stderr


SPINS = "import os; print(os.environ.get('GOMP_SPINCOUNT'))"


def test_importing_attnlab_bounds_how_long_threads_spin() -> None:
    assert python(f"import attnlab; {SPINS}") == f"{cores.SPINS}\n"


@pytest.mark.parametrize(
    ("name", "value"), [*zip(cores.WAITING, ("passive", "1234", "0", "throughput"), strict=True)]
)
def test_the_users_own_setting_wins(name: str, value: str) -> None:
    expected = "1234\n" if name == "GOMP_SPINCOUNT" else "None\n"
    assert python(f"import torch, attnlab; {SPINS}", **{name: value}) == expected


def test_torch_before_attnlab_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*cores.WAITING, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    with pytest.warns(RuntimeWarning, match=r"^torch was imported before attnlab, .* import attnlab first"):
        cores.bound_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == cores.SPINS  # processes that start later have it in time
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cores.bound_spinning()


@pytest.mark.parametrize("alone", ["one core", "one thread"])
def test_one_thread_does_not_spin_so_nothing_is_said(alone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*cores.WAITING, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    if alone == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cores.bound_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == cores.SPINS
