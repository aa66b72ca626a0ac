"""A training step of the vision transformer against others of the same shape, in turn; and decoding.

    pip install -c constraints.txt -e '.[bench]'      # the rivals
    python benchmarks/step.py                         # a table, some minutes on two idle cores
    python benchmarks/step.py --json                  # the same as JSON
    python benchmarks/step.py --out results/digits/step.json

A step is forward, backward and update of one batch in memory: the same images, the same fused AdamW, no
dropout, pre-norm, GELU, a token in front that is read out. The rivals are torch's nn.TransformerEncoder,
timm's VisionTransformer and x-transformers. Every model is timed in float32 and with its products in
bfloat16. Ratios say how many times as long the fastest rival takes: both in the same precision, and every
model in the one that suits it best. They are taken within a round, so that a slow minute touches all sides,
each side with the number of threads that suits it best. Memory that a step gives back is kept for the next
one, as trainings of this project have it; that is set for the whole process, so that rivals gain by it too.

Decoding: 16 digits of a grid of 4 x 4, with cached keys and values, and with the decoder computing every
token before anew at each place; both compute the encoder once.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
import tyro
from libraries import library
from torch import Tensor, nn

from attnlab.models import Seq2Seq, build_model
from attnlab.runs import describe_environment
from attnlab.specs import Learned, PatchSeq2SeqModel, VitModel
from attnlab.storage import write_json
from attnlab.training.threads import keep_blocks

SIDE, CLASSES, START = 28, 10, 10
SHAPES = {
    "reference": VitModel(activation="gelu", pooling="cls", positions=Learned(length=50)),
    "small": VitModel(width=64, hidden=256, activation="gelu", pooling="cls", positions=Learned(length=50)),
}
GRID = PatchSeq2SeqModel(rows=4, columns=4, decoder_layers=4, activation="gelu")

PRECISIONS = ("float32", "bfloat16")

Step = Callable[[], object]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    shapes: tuple[str, ...] = tuple(SHAPES)
    rounds: int = 5
    """Each way is timed so often, in turn."""
    steps: int = 3
    """Steps of one timing."""
    batch: int = 128
    """Images a step."""
    threads: tuple[int, ...] = (1, 2)
    """Numbers of torch's threads."""
    decode: int = 64
    """Grids that are decoded at once; 0 leaves decoding out."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    keep_blocks()
    result: dict[str, Any] = {
        "batch": options.batch,
        "steps": {name: compare_steps(SHAPES[name], options) for name in options.shapes},
    }
    if options.decode:
        result["decoding"] = compare_decoding(options)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/step.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    print(json.dumps(result, indent=1) if options.json else table(result))


def compare_steps(shape: VitModel, options: Options) -> dict[str, Any]:
    """Milliseconds a step of each way, and how many times as long as ours the best rival's takes."""
    models: dict[str, Callable[[], nn.Module]] = {
        "attnlab": lambda: build_model(shape, vocabulary=CLASSES),
        "torch": lambda: TorchVit(shape),
        "timm": lambda: TimmVit(shape),
        "x-transformers": lambda: XVit(shape),
    }
    steps: dict[str, Step] = {}
    absent, parameters = [], {}
    for name, build in models.items():
        for precision in PRECISIONS:
            try:
                torch.manual_seed(0)
                model = build()
            except ImportError as error:
                absent.append(f"{name}: {error}")
                break
            parameters[name] = sum(each.numel() for each in model.parameters())
            steps[f"{name} {precision}"] = training_step(model, options.batch, precision)
    if absent:  # the best of some rivals is not the best of all
        raise SystemExit(f"not there: {'; '.join(absent)}; pip install -c constraints.txt -e '.[bench]'")
    rounds = in_turn(steps, options)
    best = [fastest(row) for row in rounds]
    ratios = {
        **{precision: [ratio(row, precision) for row in best] for precision in PRECISIONS},
        "each at its best": [ratio(row, *PRECISIONS) for row in best],
    }
    return {
        "ratios": {name: median(each) for name, each in ratios.items()},
        "ratios_lowest": {name: min(each) for name, each in ratios.items()},
        "milliseconds": {way: median(row[way] for row in rounds) * 1e3 for way in rounds[0]},
        "parameters": parameters,
        "rounds": rounds,
    }


def ratio(row: dict[str, float], *precisions: str) -> float:
    """How many times as long as our step that of the fastest rival takes, each in the best of these."""
    times = {way: spent for way, spent in row.items() if way.rpartition(" ")[2] in precisions}
    ours = [spent for way, spent in times.items() if way.startswith("attnlab ")]
    return min(spent for way, spent in times.items() if not way.startswith("attnlab ")) / min(ours)


def compare_decoding(options: Options) -> dict[str, Any]:
    """Milliseconds for a batch of grids, with and without a cache."""
    torch.manual_seed(0)
    model = build_model(GRID, vocabulary=CLASSES + 1).eval()
    images = torch.rand(options.decode, GRID.rows * SIDE, GRID.columns * SIDE)
    ways: dict[str, Step] = {
        "cached": lambda: model.greedy(images, start=START, length=GRID.cells),
        "anew": lambda: decode_anew(model, images, GRID.cells),
    }
    assert torch.equal(model.greedy(images, start=START, length=16), decode_anew(model, images, 16))
    rounds = in_turn(ways, replace(options, steps=1))
    best = [fastest(row) for row in rounds]
    return {
        "tokens": GRID.cells,
        "ratios": {"cached": median(row["anew"] / row["cached"] for row in best)},
        "ratios_lowest": {"cached": min(row["anew"] / row["cached"] for row in best)},
        "milliseconds": {way: median(row[way] for row in rounds) * 1e3 for way in rounds[0]},
        "rounds": rounds,
    }


@torch.inference_mode()
def decode_anew(model: Seq2Seq, images: Tensor, length: int) -> Tensor:
    """Greedy decoding whose decoder keeps nothing; the memory is kept."""
    memory = model.encode(images)
    tokens = torch.full((len(images), 1), START)
    for _ in range(length):
        tokens = torch.cat((tokens, model.decode(memory, tokens)[:, -1:].argmax(dim=-1)), dim=1)
    return tokens[:, 1:]


def training_step(model: nn.Module, batch: int, precision: str) -> Step:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images, labels = torch.rand(batch, SIDE, SIDE), torch.randint(CLASSES, (batch,))

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(images)
        F.cross_entropy(logits.float(), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def in_turn(ways: dict[str, Step], options: Options) -> list[dict[str, float]]:
    """Seconds of each way and number of threads (``torch, 2``), round by round."""
    for step in ways.values():
        step()
    rounds = []
    for _ in range(options.rounds):
        row = {}
        for count in options.threads:
            torch.set_num_threads(count)
            for name, step in ways.items():
                began = time.perf_counter()
                for _ in range(options.steps):
                    step()
                row[f"{name}, {count}"] = (time.perf_counter() - began) / options.steps
        rounds.append(row)
    return rounds


def fastest(row: dict[str, float]) -> dict[str, float]:
    """The seconds of each way with the number of threads that suits it best."""
    names = dict.fromkeys(way.rpartition(", ")[0] for way in row)
    return {name: min(row[way] for way in row if way.startswith(f"{name}, ")) for name in names}


class TorchVit(nn.Module):
    """Around torch's nn.TransformerEncoder, with patches by a convolution as its users write it."""

    def __init__(self, shape: VitModel) -> None:
        super().__init__()
        width = shape.width
        self.patches = nn.Conv2d(1, width, shape.patch, shape.patch)
        self.front = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, shape.tokens(28, 28) + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, shape.heads, shape.hidden, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, shape.layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.readout = nn.Linear(width, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images[:, None]).flatten(2).transpose(1, 2)
        x = torch.cat((self.front.expand(len(x), -1, -1), x), dim=1) + self.places
        return self.readout(self.encoder(x)[:, 0])


class TimmVit(nn.Module):
    """timm's VisionTransformer."""

    def __init__(self, shape: VitModel) -> None:
        super().__init__()
        self.inner = library("timm").models.VisionTransformer(
            img_size=SIDE,
            patch_size=shape.patch,
            in_chans=1,
            num_classes=CLASSES,
            embed_dim=shape.width,
            depth=shape.layers,
            num_heads=shape.heads,
            mlp_ratio=shape.hidden / shape.width,
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.inner(images[:, None])


class XVit(nn.Module):
    """x-transformers' wrapper for images, with fused attention."""

    def __init__(self, shape: VitModel) -> None:
        super().__init__()
        from x_transformers import Encoder, ViTransformerWrapper

        layers = Encoder(
            dim=shape.width,
            depth=shape.layers,
            heads=shape.heads,
            attn_dim_head=shape.width // shape.heads,
            ff_mult=shape.hidden / shape.width,
            attn_flash=True,
        )
        self.inner = ViTransformerWrapper(
            image_size=SIDE, patch_size=shape.patch, channels=1, num_classes=CLASSES, attn_layers=layers
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.inner(images[:, None])


def table(result: dict[str, Any]) -> str:
    lines = []
    for name, found in {**result["steps"], "decoding": result.get("decoding", {})}.items():
        if found:
            lines.append(name)
            lines += [
                f"  ratio, {way}: {times:.2f}, lowest of a round {found['ratios_lowest'][way]:.2f}"
                for way, times in found["ratios"].items()
            ]
            lines += [f"  {way:28}{spent:10.2f} ms" for way, spent in found["milliseconds"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main(tyro.cli(Options))
