"""Hand-written patch attention against eager PyTorch: the same model, the same batches, in turn.

    python benchmarks/explicit.py                     # a table, about two minutes on two idle cores
    python benchmarks/explicit.py --json              # the same as JSON
    python benchmarks/explicit.py --out results/explicit/speed.json

A step is forward, backward and update of one batch in memory. PyTorch runs the fastest of its own ways,
with one and with two threads; ratios are taken within a round, so that a slow minute touches both sides.
"""

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

from attnlab.explicit import Network, Parameters
from attnlab.runs import describe_environment
from attnlab.storage import write_json

IMAGES, TEST, PATCH, TOKENS, CLASSES = 54_000, 10_000, 4, 49, 10
WIDTHS = {16: 32, 64: 128}  # width: hidden width


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 9
    """Each way is timed so often, in turn."""
    seconds: float = 0.5
    """Length of one timing."""
    batch: int = 32
    """Images a step."""
    threads: int = 2
    """Workers of the explicit network; PyTorch is measured with one thread and with so many."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


class PatchAttention(nn.Module):
    """The model in plain PyTorch."""

    def __init__(self, width: int, hidden: int, *, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.embed = nn.Linear(PATCH * PATCH, width)
        self.positions = nn.Parameter(torch.rand(TOKENS, width) - 0.5)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.expand, self.contract = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.readout = nn.Linear(width, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        count, across = len(images), 28 // PATCH
        blocks = images.view(count, across, PATCH, across, PATCH).transpose(2, 3)
        tokens = F.relu(self.embed(blocks.reshape(count, TOKENS, PATCH * PATCH)) + self.positions)
        q, k, v = self.query(tokens), self.key(tokens), self.value(tokens)
        if self.fused:
            z = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        else:
            z = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), -1) @ v
        y = self.contract(F.relu(self.expand(z)))
        return self.readout(y.mean(1))


def main(options: Options) -> None:
    result = {str(width): measure(width, hidden, options) for width, hidden in WIDTHS.items()}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/explicit.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    print(json.dumps(result, indent=1) if options.json else table(result))


def measure(width: int, hidden: int, options: Options) -> dict[str, Any]:
    """All figures of one width."""
    torch.manual_seed(0)
    images = torch.rand(options.batch, 28, 28)
    labels = torch.randint(0, CLASSES, (options.batch,))
    way, torch_step = fastest_torch_step(width, hidden, images, labels, options.threads)
    model = PatchAttention(width, hidden, fused=False)
    weights = {name.replace(".", "_"): p.detach().numpy() for name, p in model.named_parameters()}
    network = Network(Parameters(**weights), threads=options.threads)
    arrays = images.numpy(), labels.numpy()

    def explicit_step() -> None:
        network.step(*arrays, 1e-3)

    explicit_step()
    ways = {
        "explicit": (1, explicit_step),
        "torch_1": (1, torch_step),
        "torch_n": (options.threads, torch_step),
    }
    before, rounds, rates = resident(), [], []
    for _ in range(options.rounds):
        rounds.append(
            {name: timed(step, threads, options.seconds) for name, (threads, step) in ways.items()}
        )
        rates.append(product_rate(options.threads))
    best = min(("torch_1", "torch_n"), key=lambda name: median(row[name] for row in rounds))
    seconds = median(row["explicit"] for row in rounds)
    rate = median(rates)
    done, textbook = (n * 1e-9 / seconds for n in operations(width, hidden, options.batch))
    after = resident()
    test = np.random.default_rng(0).random((TEST, 28, 28), np.float32)
    return {
        "ratio": median(row[best] / row["explicit"] for row in rounds),
        "ratio_lowest": min(row[best] / row["explicit"] for row in rounds),
        "explicit_ms": seconds * 1e3,
        "torch_ms_1_thread": median(row["torch_1"] for row in rounds) * 1e3,
        f"torch_ms_{options.threads}_threads": median(row["torch_n"] for row in rounds) * 1e3,
        "torch_best_threads": ways[best][0],
        "torch_way": way,
        "threads": options.threads,
        "gflops": done,
        "gflops_of_the_formulas": textbook,
        "machine_gflops": rate,
        "share_of_machine": done / rate,
        "epoch_seconds": seconds * IMAGES / options.batch,
        "evaluation_seconds": median(once(lambda: network.logits(test)) for _ in range(5)),
        "resident_mb_before": before / 2**20,
        "resident_mb_after": after / 2**20,
        "rounds": rounds,
    }


def fastest_torch_step(
    width: int, hidden: int, images: Tensor, labels: Tensor, threads: int
) -> tuple[str, Callable[[], None]]:
    """PyTorch's ways of attention and of the update, tried in short."""
    ways = {}
    for attention in ("scaled_dot_product_attention", "softmax"):
        for update in ("fused", "foreach", "plain"):
            model = PatchAttention(width, hidden, fused=attention != "softmax")
            optimiser = torch.optim.SGD(
                model.parameters(), lr=1e-3, foreach=update == "foreach", fused=update == "fused"
            )

            def step(model: nn.Module = model, optimiser: torch.optim.Optimizer = optimiser) -> None:
                optimiser.zero_grad(set_to_none=True)
                F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
                optimiser.step()

            ways[f"{attention}, {update} SGD"] = step
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(5):
        for name, step in ways.items():
            spent[name].append(min(timed(step, count, 0.05) for count in {1, threads}))
    best = min(ways, key=lambda name: median(spent[name]))
    return best, ways[best]


def operations(width: int, hidden: int, batch: int) -> tuple[int, int]:
    """Additions and multiplications in the products of a step: those done here, those of the formulas."""
    t, p, d, f, c = TOKENS, PATCH * PATCH, width, hidden, CLASSES
    embed, attend = 4 * t * p * d, 12 * t * t * d
    done = batch * (embed + attend + 6 * t * d * d + 6 * t * d * f + 6 * c * f)
    done += 6 * (d * d * d + f * d * d + c * d * f)
    return done, batch * (embed + attend + 18 * t * d * d + 12 * t * d * f + 6 * c * d)


def timed(step: Callable[[], None], threads: int, seconds: float) -> float:
    """Seconds a step, over about ``seconds``; ``threads`` are PyTorch's."""
    torch.set_num_threads(threads)
    step()
    count, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        for _ in range(5):
            step()
        count += 5
    return spent / count


def once(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def product_rate(threads: int, size: int = 1024) -> float:
    """GFLOPS of large float32 matrix products in PyTorch."""
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)

    def multiply() -> None:
        torch.mm(a, b, out=out)

    return 2e-9 * size**3 / timed(multiply, threads, 0.1)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def table(result: dict[str, dict[str, Any]]) -> str:
    lines = []
    for key in next(iter(result.values())):
        cells = [row[key] for row in result.values()]
        if key != "rounds":
            lines.append(
                f"{key:26}"
                + "".join(f"{c:>22.4g}" if isinstance(c, float) else f"  {c!s:>20}" for c in cells)
            )
    return "\n".join([f"{'width':26}" + "".join(f"{width:>22}" for width in result), *lines])


if __name__ == "__main__":
    main(tyro.cli(Options))
