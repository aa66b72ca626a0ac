"""How long the explorer's engine in JavaScript takes for a scene of the shipped runs, in V8 alone.

    python benchmarks/engine.py              # a table, half a minute on an idle core
    python benchmarks/engine.py --json       # the same as JSON
    python benchmarks/engine.py --out results/explorer/engine.json

A scene is everything: the answer by greedy decoding, the pattern of every head, and the early guess after
every layer. ``new input`` gives another input each time; ``edit`` switches a head off and asks about the
same input again, whose patches are embedded already. ``first`` is the first scene of all, before V8 has
compiled anything. Lists have 16 numbers, and images are noise: a model computes the same whatever it sees.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Literal

import torch
import tyro
from py_mini_racer import MiniRacer

import attnlab
from attnlab.explorer.bundle import bundle
from attnlab.explorer.description import describe_engine
from attnlab.runs import describe_environment, open_run
from attnlab.storage import write_json

ENGINE = Path(attnlab.__file__).parent / "explorer" / "js" / "engine" / "engine.js"
RUNS = ("zoo:adder", "zoo:digit", "zoo:grid", "zoo:long-adder", "zoo:sorter")
WORK = {"new input": "[]", "edit": '[{ op: "off", at: "encoder.0.self.1", to: "zero" }]'}
LOADING = """
let room, model, inputs;
const reserve = (bytes) => (room = new ArrayBuffer(bytes));
function load(description, layout, kernels) {
  let at = 0;
  const tensors = Object.fromEntries(layout.map(([name, shape, size]) => {
    at += 4 * size;
    return [name, { shape, data: new Float32Array(room.slice(at - 4 * size, at)) }];
  }));
  model = engine.makeModel(description, tensors, { kernels });
}
let state = 1;
const below = (count) => (state = (state * 48271) % 2147483647) % count;
const filled = (count, most) => Array.from({ length: count }, () => below(most));
const size = (shape) => shape.reduce((a, b) => a * b);
const image = (shape) => ({ pixels: { shape, data: Uint8Array.from(filled(size(shape), 256)) } });
"""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    runs: tuple[str, ...] = RUNS
    scenes: int = 100
    kernels: Literal["simd", "plain"] = "simd"
    """SIMD instructions, or plain loops."""
    json: bool = False
    out: Path | None = None


def loaded(name: str, kernels: str) -> MiniRacer:
    """V8 with the model of a run, and ``fresh``, which makes an input."""
    run, v8 = open_run(name), MiniRacer()
    task, weights = run.spec().task, run.model.state_dict()
    v8.eval(bundle(ENGINE, "engine") + LOADING + "0")
    blob = b"".join(each.float().contiguous().numpy().tobytes() for each in weights.values())
    room: Any = v8.eval(f"reserve({len(blob)})")
    room[:] = blob
    layout = [[key, list(each.shape), each.numel()] for key, each in weights.items()]
    description = json.dumps(describe_engine(run).to_json())
    v8.eval(f"load({description}, {json.dumps(layout)}, {kernels!r}); 0")
    if task.cell_shape is None:
        length = 16 if task.start is None else task.input_length
        fresh = f"({{ tokens: filled({length}, 10) }})"
    else:
        channels, height, width = task.cell_shape
        rows, columns = (2, 2) if task.target_length == 4 else (1, 1)
        fresh = f"image([{channels}, {height * rows}, {width * columns}])"
    v8.eval(f"const fresh = () => {fresh}; let input = fresh(); 0")
    return v8


def measure(v8: MiniRacer, work: str, scenes: int) -> dict[str, Any]:
    """Milliseconds a scene; those in which V8 still compiles are left out of the median."""
    change = "input = fresh();" if work == "new input" else ""
    v8.eval(f"function once() {{ model.scene({{ input, edits: {WORK[work]} }}); return 0; }}")
    taken = []
    for _ in range(scenes + scenes // 2):
        v8.eval(change + "0")
        began = time.perf_counter()
        v8.eval("once()")
        taken.append(1000 * (time.perf_counter() - began))
    later = taken[scenes // 2 :]
    return {"median": median(later), "p95": quantiles(later, n=20)[-1], "first": taken[0]}


def main(options: Options) -> None:
    rows: list[dict[str, Any]] = []
    for name in options.runs:
        with loaded(name, options.kernels) as v8:
            rows += [{"run": name, "work": work, **measure(v8, work, options.scenes)} for work in WORK]
    kind = {
        "command": "python benchmarks/engine.py",
        "scenes": options.scenes,
        "kernels": options.kernels,
        "rows": rows,
    }
    found = {**kind, "environment": describe_environment().to_json()}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, found)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print("| run | scene | ms, median | 95% | first |\n|---|---|---|---|---|")
    for row in rows:
        numbers = " | ".join(f"{row[key]:.1f}" for key in ("median", "p95", "first"))
        print(f"| {row['run']} | {row['work']} | {numbers} |")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(tyro.cli(Options))
