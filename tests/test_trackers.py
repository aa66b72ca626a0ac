"""Trackers mirror the run folder, touch nothing else, and never cost a run."""

import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, final

import numpy as np
import pytest

from attnlab.errors import LabError
from attnlab.runs import RunFolder, as_line, create_run, open_run
from attnlab.runs.files import STATE
from attnlab.specs import Spec, to_json
from attnlab.training import Listener, Trainer, train_run
from attnlab.training.trackers import Backend, Tracker, Tracking, WandB, build_tracker, load_tracker
from commands import TINY, apart, command, environment, run
from tiny import tiny

Values = dict[str, dict[int, float]]
"""What was tracked: by name, by step."""

STEP = ("loss", "exact_match", "lr")
EPOCH = ("loss", "valid_loss", "valid_token_accuracy", "valid_exact_match")
MAIN = "from attnlab.cli.main import main; main()"


def kept(run: RunFolder) -> Values:
    """What the run folder says that trackers should have."""
    found: Values = {
        f"{event}/{key}": {} for event, keys in (("step", STEP), ("epoch", EPOCH)) for key in keys
    }
    for line in map(as_line, run.metrics().lines):
        for key in STEP if line["event"] == "step" else EPOCH:
            found[f"{line['event']}/{key}"][line["step"]] = line[key]
    return found


def rounded(values: Values) -> Values:
    """TensorBoard keeps single precision."""
    return {name: {step: float(np.float32(v)) for step, v in rows.items()} for name, rows in values.items()}


def tensorboard(run: RunFolder) -> Any:
    """What TensorBoard shows of a run, every record of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        shown = EventAccumulator(str(run.file("tensorboard")), size_guidance={"scalars": 0})
        return shown.Reload()


def in_tensorboard(run: RunFolder) -> Values:
    shown = tensorboard(run)
    found: Values = {}
    for name in shown.Tags()["scalars"]:
        rows = [(row.step, row.value) for row in shown.Scalars(name)]
        found[name] = dict(rows)
        assert len(found[name]) == len(rows), f"{name} has a step twice"
    return found


def wandb_records(path: Path) -> Iterator[Any]:
    """Records of an offline run: LevelDB's log format, blocks of 32 KiB, behind a header of 7 bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    data, place, whole = path.read_bytes(), 7, b""
    assert data.startswith(b":W&B")
    while place + 7 <= len(data):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole, place = whole + data[place + 7 : place + 7 + size], place + 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield proto.Record.FromString(whole)
            whole = b""


def offline_files(run: RunFolder) -> list[Path]:
    return sorted(run.path.glob("wandb/offline-run-*/run-*.wandb"))


def in_wandb(run: RunFolder) -> Values:
    found: Values = {}
    for path in offline_files(run):
        for record in wandb_records(path):
            items = {item.nested_key[0]: item.value_json for item in record.history.item}
            step = int(items.pop("_step", "0"))
            for name in (name for name in items if not name.startswith("_")):
                assert step not in found.setdefault(name, {}), f"{name} has step {step} twice"
                found[name][step] = json.loads(items[name])
    return found


def about_wandb(run: RunFolder) -> tuple[str, str, str, dict[str, Any]]:
    """Id, name, project and configuration of the first offline run."""
    records = list(wandb_records(offline_files(run)[0]))
    (told,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    config = {entry.key: json.loads(entry.value_json) for entry in told.config.update}
    config.pop("_wandb")
    return told.run_id, told.display_name, told.project, config


def weights(run: RunFolder) -> list[bytes]:
    return [run.file(name).read_bytes() for name in ("best.safetensors", "last.safetensors")]


def trained(path: Path, *trackers: Tracker, spec: Spec | None = None) -> RunFolder:
    run = create_run(path, spec or tiny(threads=1))
    assert train_run(run, listeners=[build_tracker(name, run) for name in trackers]) is not None
    return run


@pytest.fixture
def no_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A home without an account, and a network that leads to a listener of ours."""
    for name in [name for name in os.environ if name.startswith("WANDB_") or name == "NETRC"]:
        monkeypatch.delenv(name)
    with socket.create_server(("127.0.0.1", 0)) as network:
        network.setblocking(False)
        address = f"http://127.0.0.1:{network.getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        yield network


@pytest.mark.slow
@pytest.mark.parametrize("asked", [(), ("tensorboard",)])
def test_nothing_is_imported_that_was_not_asked_for(asked: tuple[str, ...], tmp_path: Path) -> None:
    look = (
        "import sys; print(*sorted({'tensorboard', 'torch.utils.tensorboard', 'wandb'} & {*sys.modules}))"
    )
    code = f"import sys; from attnlab.cli.main import run; run(sys.argv[1:]); {look}"
    track = ("--track", *asked) if asked else ()
    done = run([sys.executable, "-c", code, "train", "addition", *TINY, *track], cwd=tmp_path)
    expected = "tensorboard torch.utils.tensorboard" if asked else ""
    assert done.stdout.splitlines()[-1] == expected


def test_tensorboard_has_every_record_and_the_spec(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "tensorboard")
    assert in_tensorboard(run) == rounded(kept(run))
    assert [len(rows) for rows in kept(run).values()] == [15] * 3 + [3] * 4
    (text,) = tensorboard(run).Tensors("spec/text_summary")
    assert json.loads(text.tensor_proto.string_val[0]) == to_json(run.spec())
    assert weights(run) == weights(trained(tmp_path / "quiet"))


def test_steps_that_are_taken_again_are_not_shown_twice(tmp_path: Path) -> None:
    """Killed after step 11, when the state of step 7 was the last one saved."""
    run = create_run(tmp_path / "run", tiny(threads=1))

    def train(steps: int) -> None:
        left = iter([False] * steps + [True])
        train_run(run, listeners=[build_tracker("tensorboard", run)], stopping=lambda: next(left))

    train(7)
    state = run.file(STATE).read_bytes()
    train(4)
    assert max(in_tensorboard(run)["step/loss"]) == 11
    run.write({STATE: state})
    train(15)
    assert in_tensorboard(run) == rounded(kept(run))
    assert list(in_tensorboard(run)["step/loss"]) == list(range(1, 16))


@pytest.mark.slow
def test_wandb_works_without_account_and_network(tmp_path: Path, no_account: socket.socket) -> None:
    done = apart("train", "addition", *TINY, "--out=run", "--json", "--track", "wandb", cwd=tmp_path)
    with pytest.raises(BlockingIOError):
        no_account.accept()
    assert json.loads(done.stdout)["steps"] == 39
    begin, *epochs, end = done.stderr.splitlines()
    assert begin == "training run"
    assert [line[:5] for line in epochs] == ["epoch"] * 3
    assert end == "tracked by wandb; send it with: wandb sync run/wandb/offline-run-*"
    run = open_run(str(tmp_path / "run"))
    assert in_wandb(run) == kept(run)
    _, name, project, config = about_wandb(run)
    assert (name, project, config) == ("run", "attnlab", to_json(run.spec()))


@pytest.mark.slow
def test_stopped_and_resumed_with_both_trackers(tmp_path: Path, no_account: socket.socket) -> None:
    words = ("train", "addition", *TINY, "--training.epochs", "20", "--checkpoint", "1000")
    both = ("--track", "wandb", "tensorboard")
    process = subprocess.Popen(
        command(*words, "--out", "run", *both),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("epoch   2"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "tracked by tensorboard; see it with: tensorboard --logdir run/tensorboard" in said
    apart("train", "--resume", "run", *both, cwd=tmp_path)
    run = open_run(str(tmp_path / "run"))
    assert weights(run) == weights(trained(tmp_path / "whole", spec=run.spec()))
    assert in_tensorboard(run) == rounded(kept(run))
    first, second = offline_files(run)
    assert first.name == second.name
    assert in_wandb(run) == kept(run)


@pytest.mark.slow
def test_the_demo_tracks_once_and_prints_nothing_but_json(tmp_path: Path) -> None:
    words = ("--out=run", "--json", "--track", "tensorboard", "tensorboard")
    done = apart("demo", *TINY, *words, cwd=tmp_path)
    assert json.loads(done.stdout)["training"]["steps"] == 39
    assert len(list((tmp_path / "run/tensorboard").iterdir())) == 1
    assert done.stderr.count("tracked by") == 1
    assert "arning" not in done.stderr


def test_a_finished_run_is_not_tracked_again(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    tracker = build_tracker("tensorboard", run)
    assert train_run(run, listeners=[tracker]) == run.summary()
    assert (tracker.look, tracker.failure) == ("", "")
    assert not run.file("tensorboard").exists()


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_package_that_is_missing(name: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; {MAIN}"
    words = [sys.executable, "-c", code, "train", "addition", *TINY, "--out=run", "--track", name]
    done = run(words, cwd=tmp_path, code=2)
    assert done.stderr == (
        f"attnlab: track {name} needs the package {name}; install it with: pip install 'attnlab[{name}]'\n"
    )
    assert done.stdout == ""
    assert not (tmp_path / "run").exists()


def test_a_package_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb.py").write_text("raise TypeError('protobuf is\\ntoo new')")
    monkeypatch.syspath_prepend(tmp_path)
    for module in [name for name in sys.modules if name.partition(".")[0] == "wandb"]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(LabError) as caught:
        load_tracker("wandb")
    assert str(caught.value) == (
        "track wandb needs the package wandb, which is there but cannot be imported "
        "(protobuf is too new); install it again with: pip install 'attnlab[wandb]'"
    )


def test_a_tracker_that_does_not_exist(tmp_path: Path) -> None:
    done = apart("train", "addition", *TINY, "--track", "wand", cwd=tmp_path, code=2)
    assert "invalid choice 'wand' for argument '--track'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
    said = apart("train", "--resume", "x", "--help", cwd=tmp_path).stdout
    assert "--track [{tensorboard,wandb} [{tensorboard,wandb} ...]]" in said


@final
class Broken(Backend):
    """Fails at one of its calls and counts them."""

    def __init__(self, at: str, step: int = 0) -> None:
        self.at, self.step = at, step
        self.calls: list[str] = []

    def open(self, run: RunFolder, spec: Spec, step: int) -> str:
        return self._call("open", step)

    def write(self, step: int, values: dict[str, float]) -> None:
        self._call("write", step)

    def close(self) -> None:
        self._call("close", self.step)

    def _call(self, name: str, step: int) -> str:
        self.calls.append(name)
        if name == self.at and step >= self.step:
            raise OSError("the network\nis down")
        return "see it"


@pytest.mark.parametrize(
    ("backend", "step", "calls"),
    [
        (Broken("write", 7), 7, ["open", *["write"] * 8, "close"]),  # of them one for an epoch
        (Broken("close"), 15, ["open", *["write"] * 18, "close"]),
    ],
    ids=["write", "close"],
)
def test_a_tracker_that_fails_on_the_way(
    backend: Broken, step: int, calls: list[str], tmp_path: Path
) -> None:
    run = create_run(tmp_path / "run", tiny(threads=1))
    tracker = Tracking("wandb", run, backend)
    assert train_run(run, listeners=[tracker]) is not None
    assert tracker.failure == (
        f"wandb failed at step {step} (the network is down) and was left out; "
        "metrics.jsonl has every record"
    )
    assert backend.calls == calls
    assert weights(run) == weights(trained(tmp_path / "quiet"))


def test_a_tracker_that_cannot_start(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny(threads=1))
    with pytest.raises(LabError) as caught:
        train_run(run, listeners=[Tracking("wandb", run, Broken("open"))])
    assert str(caught.value) == (
        f"wandb could not start (the network is down); the run {run.path} is kept; when that is solved, "
        "resume it with track wandb"
    )
    assert train_run(run) is not None


def test_event_files_that_vanish_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorBoard's writing thread dies without a traceback; that of any other thread is still seen."""
    seen: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    run = create_run(tmp_path / "run", tiny(threads=1))

    @final
    class Vandal(Listener):
        def stepped(self, trainer: Trainer) -> None:
            if trainer.step == 6:
                shutil.rmtree(run.file("tensorboard"))
                other = threading.Thread(target=int, args=["no number"])
                other.start()
                other.join()

    tracker = build_tracker("tensorboard", run)
    assert train_run(run, listeners=[tracker, Vandal()]) is not None
    assert tracker.failure.startswith("tensorboard failed at step 7 ([Errno 2] No such file or directory")
    assert [event.exc_type for event in seen] == [ValueError]
    assert threading.excepthook == seen.append
    assert weights(run) == weights(trained(tmp_path / "quiet"))


def test_the_command_says_that_a_tracker_failed(tmp_path: Path) -> None:
    fail = "def fail(*_): raise OSError('full')"
    code = f"{fail}\nimport attnlab.training.trackers as t; t.TensorBoard.write = fail; {MAIN}"
    words = [sys.executable, "-c", code, "train", "addition", *TINY, "--out=run", "--track=tensorboard"]
    done = run(words, cwd=tmp_path)
    assert (
        "\ntensorboard failed at step 1 (full) and was left out; metrics.jsonl has every record\n"
        in done.stderr
    )
    assert "39 steps" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "account", "mode"),
    [
        ("online", True, "online"),
        ("online", False, "offline"),
        ("offline", True, "offline"),
        ("disabled", True, "disabled"),
    ],
)
def test_wandb_is_asked_politely(
    asked: str, account: bool, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is used if there is one and nobody said otherwise; the project is the user's."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    run, told = create_run(tmp_path / "run", tiny()), pretend(monkeypatch, asked, account)
    look = WandB().open(run, run.spec(), 0)
    assert told.pop("settings") == SimpleNamespace(silent=True, console="off", reinit="finish_previous")
    assert len(told.pop("id")) == 16
    assert told == {
        "name": "run",
        "project": "mine",
        "dir": str(run.path),
        "mode": mode,
        "resume": "allow",
        "config": to_json(run.spec()),
    }
    looks = {
        "online": "see it at: the page",
        "offline": f"send it with: wandb sync {run.path}/wandb/offline-run-*",
        "disabled": "",
    }
    assert look == looks[mode]


def test_wandb_online_needs_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    pretend(monkeypatch, "online", False)
    run = create_run(tmp_path / "run", tiny(threads=1))
    with pytest.raises(
        LabError, match="WANDB_MODE is 'online', but wandb knows no account: run 'wandb login' or unset it"
    ):
        train_run(run, listeners=[build_tracker("wandb", run)])


def pretend(monkeypatch: pytest.MonkeyPatch, mode: str, account: bool) -> dict[str, Any]:
    """A package wandb with or without an account; what it is started with."""
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    told: dict[str, Any] = {}

    def init(**asked: Any) -> Any:
        told.update(asked)
        kind = asked["mode"]
        return SimpleNamespace(disabled=kind == "disabled", offline=kind == "offline", url="the page")

    settings = SimpleNamespace(mode=mode, project="mine")
    wandb = SimpleNamespace(
        Settings=SimpleNamespace,
        setup=lambda _: SimpleNamespace(settings=settings),
        login=lambda **_: account,
        init=init,
    )
    monkeypatch.setattr("attnlab.training.trackers.load_tracker", lambda _: wandb)
    return told
