"""How well the probabilities of shipped readers are calibrated, and what leaving answers out would give.

    python benchmarks/calibration.py                              # zoo:digit and zoo:grid, two minutes
    python benchmarks/calibration.py --json
    python benchmarks/calibration.py --out results/calibration

Each run is asked twice, with logits as they are (``temperature`` 1) and divided by its temperature, which
was fitted on validation data alone (``attnlab calibrate``). Both must give the same answer to every image.
``again`` is what a fit on the validation data gives here. Of a grid every digit counts. Writes
``digit.json`` and ``grid.json``.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import tyro

from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import log_loss, measure_calibration
from attnlab.runs import RunFolder, describe_environment, open_run
from attnlab.specs import Split
from attnlab.storage import make_folder, write_json
from attnlab.training.temperature import answers_of, fit_temperature

COMMAND = "python benchmarks/calibration.py"


@dataclass(frozen=True)
class Options:
    """What to measure."""

    runs: tuple[str, ...] = ("zoo:digit", "zoo:grid")
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A folder for the results, with the environment."""


@dataclass(frozen=True)
class Told:
    """What probabilities are worth at one temperature."""

    temperature: float
    loss: float
    ece: float
    confidence: float


@dataclass(frozen=True)
class Measured:
    """Of one split: digits, the share that is right, and the share of images wholly right."""

    images: int
    digits: int
    accuracy: float
    exact_match: float
    plain: Told
    calibrated: Told


def main(options: Options) -> None:
    found = {name: _measured(open_run(name)) for name in options.runs}
    for name, result in found.items():
        if options.out is not None:
            make_folder(options.out)
            written = {
                "command": f"{COMMAND} --runs {name}",
                "environment": describe_environment().to_json(),
                **result,
            }
            write_json(options.out / f"{name.rpartition(':')[2]}.json", written)
        if not options.json:
            _print(name, result)
    if options.json:
        print(json.dumps(found, indent=2))


def _measured(run: RunFolder) -> dict[str, Any]:
    spec = run.spec()
    logits, targets = answers_of(spec.task, run.model, spec.task.splits(spec.seed).valid)
    return {
        "run": run.name,
        "temperature": run.temperature,
        "again": fit_temperature(logits, targets),
        "valid": asdict(_told(run, "valid")),
        "test": asdict(_told(run, "test")),
    }


def _told(run: RunFolder, split: Split) -> Measured:
    reader = image_classifier(run)
    images = reader.images(split)
    calibrated = reader.predict_proba(images.pixels)
    (member,) = reader.members
    temperature, member.model.temperature = member.model.temperature, 1.0
    plain = reader.predict_proba(images.pixels)
    member.model.temperature = temperature
    if not torch.equal(plain.argmax(dim=-1), calibrated.argmax(dim=-1)):
        sys.exit(f"{run.name} answers otherwise with a temperature, which must not be")
    right = calibrated.argmax(dim=-1) == images.truth

    def told(said: torch.Tensor, at: float) -> Told:
        sure = measure_calibration(said, images.truth)
        return Told(at, log_loss(said, images.truth), sure.ece, sure.confidence)

    return Measured(
        images=len(right),
        digits=right.numel(),
        accuracy=right.double().mean().item(),
        exact_match=right.all(dim=1).double().mean().item(),
        plain=told(plain, 1.0),
        calibrated=told(calibrated, temperature),
    )


def _print(name: str, found: dict[str, Any]) -> None:
    print(f"{name}: temperature {found['temperature']:g}, fitted again {found['again']:g}")
    for split in ("valid", "test"):
        row = found[split]
        plain, now = row["plain"], row["calibrated"]
        print(
            f"  {split}: {row['accuracy']:.2%} of {row['digits']:,} digits correct; mean probability "
            f"{plain['confidence']:.2%} -> {now['confidence']:.2%}, ECE {plain['ece']:.2%} -> "
            f"{now['ece']:.2%}, loss {plain['loss']:.4f} -> {now['loss']:.4f}"
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
