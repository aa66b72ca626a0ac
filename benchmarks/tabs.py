"""Many pages at once on one explorer: errors, latency and memory.

    python benchmarks/tabs.py                     # 50 pages, a minute
    python benchmarks/tabs.py --minutes 10 --out results/explorer/tabs.json

The server is a process of its own, ``attnlab explore``. Each page has a socket, one of the shipped runs,
and an interaction a second: another input, or a head switched off. Memory is the server's, sampled every
few seconds (on Linux); what it gains is the difference of the medians of the last and the first fifth of
the samples after a warm-up.
"""

import asyncio
import json
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import tyro
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from attnlab.explorer.messages import read_frame, write_frame
from attnlab.runs import describe_environment
from attnlab.storage import write_json

RUNS = ("zoo:adder", "zoo:long-adder", "zoo:sorter", "zoo:digit", "zoo:grid")
WARM_UP = 0.1
"""Share of the time in which models are opened and caches filled; memory counts after it."""
MIB = 2**20


@dataclass(frozen=True)
class Options:
    """What to measure."""

    tabs: int = 50
    minutes: float = 1.0
    every: float = 1.0
    """Seconds between two interactions of a page."""
    sample: float = 2.0
    """Seconds between two looks at the memory."""
    seed: int = 0
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


@dataclass
class Found:
    """Seconds that answers took, what went wrong, and the server's memory by the time."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)


@contextmanager
def server() -> Iterator[tuple[str, int]]:
    """The address and the process of an explorer."""
    words = [sys.executable, "-m", "attnlab", "explore", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


@dataclass
class Tab:
    """One page: its socket, its run, and the heads that it can switch off."""

    link: ClientConnection
    run: str
    chance: random.Random
    heads: list[str] = field(default_factory=list)
    last: int = 0

    async def call(self, kind: str, **body: Any) -> Any:
        self.last += 1
        await self.link.send(write_frame({"id": self.last, "kind": kind, "run": self.run, **body}))
        while True:
            frame = await self.link.recv(decode=False)
            found, _ = read_frame(frame)
            if found["id"] == self.last:
                if not found["ok"]:
                    raise RuntimeError(found["error"])
                return found["value"]

    async def open(self) -> None:
        subject = await self.call("open")
        sites = subject["model"]["sites"]
        self.heads = [f"{site['path']}.{head}" for site in sites for head in range(site["heads"])]

    async def interact(self) -> None:
        edits = [{"op": "off", "at": self.chance.choice(self.heads), "to": "zero"}]
        given = {"example": {"split": "valid", "index": self.chance.randrange(500)}}
        await self.call("ask", question={"input": given, "edits": self.chance.choice([[], edits])})


async def drive(address: str, number: int, options: Options, until: float, found: Found) -> None:
    """One page until the time is over."""
    home, token = re.fullmatch(r"(http://[^/]+)/([^/]+)/.*", address).groups()  # type: ignore[union-attr]
    url = f"{home.replace('http', 'ws')}/{token}/socket"
    chance = random.Random(1_000 * options.seed + number)
    try:
        async with connect(url, origin=Origin(home), max_size=None, compression=None) as link:
            tab = Tab(link, RUNS[number % len(RUNS)], chance)
            await tab.open()
            await asyncio.sleep(chance.random() * options.every)
            while (began := time.monotonic()) < until:
                await tab.interact()
                took = time.monotonic() - began
                found.seconds.append(took)
                await asyncio.sleep(max(0.0, options.every - took))
    except Exception as error:  # counted, whatever it is
        found.errors.append(f"{type(error).__name__}: {error}")


async def watch(pid: int, options: Options, found: Found) -> None:
    began = time.monotonic()
    while True:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        found.memory.append((time.monotonic() - began, pages * resource.getpagesize()))
        await asyncio.sleep(options.sample)


async def measure(options: Options) -> Found:
    found = Found()
    with server() as (address, pid):
        watching = asyncio.create_task(watch(pid, options, found))
        until = time.monotonic() + 60 * options.minutes
        await asyncio.gather(*(drive(address, each, options, until, found) for each in range(options.tabs)))
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    return found


def summary(options: Options, found: Found) -> dict[str, Any]:
    cuts = quantiles(found.seconds, n=100) if len(found.seconds) > 1 else [0.0] * 99
    settled = [size for at, size in found.memory if at >= WARM_UP * 60 * options.minutes]
    fifth = max(1, len(settled) // 5)
    return {
        "tabs": options.tabs,
        "minutes": options.minutes,
        "runs": list(RUNS),
        "interactions": len(found.seconds),
        "errors": found.errors,
        "median_ms": round(1000 * cuts[49], 1),
        "p95_ms": round(1000 * cuts[94], 1),
        "memory_mib": round(median(settled[:fifth]) / MIB, 1),
        "memory_gained_mib": round((median(settled[-fifth:]) - median(settled[:fifth])) / MIB, 1),
        "memory_samples_mib": [round(size / MIB, 1) for _, size in found.memory],
    }


def main(options: Options) -> None:
    result = summary(options, asyncio.run(measure(options)))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = f"python benchmarks/tabs.py --tabs {options.tabs} --minutes {options.minutes:g}"
        write_json(
            options.out, {**result, "command": command, "environment": describe_environment().to_json()}
        )
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        if name != "memory_samples_mib":
            print(f"{name:<18} {value}")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
