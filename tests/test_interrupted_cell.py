"""Interrupting a cell of a real Jupyter kernel while it trains: the training is saved and goes on later."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

pytestmark = pytest.mark.slow

SECONDS = 120
"""What a cell may take at most."""
ASKED = "asked"
"""A file that is there as soon as the interrupt was sent; so it comes neither too early nor too late."""

PREPARE = f"""
import hashlib, json, time
from pathlib import Path

import attnlab as al
from attnlab.front.training import TrainingMeter

shown = TrainingMeter.epoch_ended

def show_and_wait(self, trainer, record):
    shown(self, trainer, record)
    while not Path({ASKED!r}).exists():
        time.sleep(0.01)

TrainingMeter.epoch_ended = show_and_wait
small = al.spec("addition", digits=1, width=8, heads=2, hidden=8, encoder_layers=1, decoder_layers=1,
                epochs=3, batch=16, train=64, valid=16, test=16, dropout=0.1, threads=1, seed=5)

def found(run):
    weights = {{name: run.file(name) for name in ("best.safetensors", "last.safetensors")}}
    hashes = {{name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in weights.items()
              if file.exists()}}
    epochs = len(run.metrics().epochs)
    return json.dumps({{"finished": run.summary() is not None, "epochs": epochs, "hashes": hashes}})
"""

Say = Callable[[str], None]


class Cells:
    """A kernel and what its cells print."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def run(self, source: str, *, printed: Say = lambda _: None) -> str:
        """Everything that the cell printed; ``printed`` is told of each piece as it comes."""
        text: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                text.append(message["content"]["text"])
                printed(message["content"]["text"])

        reply = self._client.execute_interactive(
            source, timeout=SECONDS, output_hook=hear, allow_stdin=False
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(text)


@pytest.fixture
def cells(tmp_path: Path) -> Iterator[Cells]:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        yield Cells(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_an_interrupted_cell_returns_a_run_that_goes_on_to_the_same_bytes(
    cells: Cells, tmp_path: Path
) -> None:
    cells.run(PREPARE)

    def interrupt(text: str) -> None:
        if "epoch   1 of 3" in text and not (tmp_path / ASKED).exists():
            cells.interrupt()
            (tmp_path / ASKED).touch()

    said = cells.run("run = al.train(small, out='stopped')", printed=interrupt)
    assert "stopped and saved in stopped" in said
    stopped = json.loads(cells.run("print(found(run))"))
    assert not stopped["finished"]
    assert stopped["epochs"] == 1
    assert "stopped after 1 of 3 epochs" in cells.run("print(run._repr_html_())")

    cells.run("same = run.resume()")
    resumed = json.loads(cells.run("assert same is run; print(found(run))"))
    cells.run("whole = al.train(small, out='whole')")
    whole = json.loads(cells.run("print(found(whole))"))
    assert resumed == whole
    assert whole["finished"]
    assert whole["epochs"] == 3
    assert len(whole["hashes"]) == 2
