"""What zeroing a head costs the reference model, measured soundly and as the reference reports measured it.

    python benchmarks/reference_heads.py              # trains three models first, about 20 minutes
    python benchmarks/reference_heads.py --seeds 1

The reports decoded from a first token 0, so that the leading digit was always 0: a sum counted as right if
it is below 1000 and its other digits are right after that 0. By teacher forcing one pass tells both.
Writes ``results/ablation/reference.json``.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from presets_trained import trained_adder

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import Baseline, optimal_baseline, zero_baseline
from attnlab.analysis.subjects import Answers, Subject, load_subject, score
from attnlab.models import heads
from attnlab.presets import preset
from attnlab.runs import RunFolder, describe_environment
from attnlab.specs import to_json
from attnlab.storage import write_json

LOSS = 0.01
COUNTED = ("sound", "as_reported")


@dataclass(frozen=True)
class Options:
    """What to measure."""

    seeds: int = 3
    """So many seeds of the preset ``reference``, from 0."""
    examples: int = 2000
    """Test sums, and training sums to fit constants by."""
    runs: Path = Path("runs/benchmark-addition")
    """Where the runs are, or are trained to."""
    out: Path = Path("results/ablation/reference.json")
    """The file to write."""


def main(options: Options) -> None:
    environment = describe_environment().to_json()
    seeds = []
    for seed in range(options.seeds):
        seeds.append(
            {"seed": seed, **measure(trained_adder("reference", seed, options.runs), options.examples)}
        )
        print(json.dumps(_counts(seeds[-1])), file=sys.stderr, flush=True)
    write_json(
        options.out,
        {
            "command": f"python benchmarks/reference_heads.py --seeds {options.seeds}",
            "environment": environment,
            "spec": to_json(preset("addition", "reference")),
            "examples": options.examples,
            "allowed_loss": LOSS,
            "seeds": seeds,
        },
    )


def measure(run: RunFolder, examples: int) -> dict[str, Any]:
    """Accuracy with all heads and without each, counted both ways, and how many cost under a point."""
    subject = load_subject(run, split="test", count=examples)
    train = load_subject(run, split="train", count=examples).examples
    whole = shares(subject, score(subject.model, subject.examples))
    baselines = {
        "zero": zero_baseline(subject.model),
        "optimal": optimal_baseline(subject.model, train),
    }
    found = {name: _one_at_a_time(subject, baseline, whole) for name, baseline in baselines.items()}
    return {"whole": whole, **found}


def _one_at_a_time(subject: Subject, baseline: Baseline, whole: dict[str, float]) -> dict[str, Any]:
    """What each head costs alone; how many cost under a point, and what is right without all of these."""
    names = [str(head) for head in heads(subject.model)]
    found = {head: _without(subject, [head], baseline) for head in names}
    lost = {head: {way: whole[way] - found[head][way] for way in COUNTED} for head in names}
    harmless = {way: [head for head in names if lost[head][way] < LOSS] for way in COUNTED}
    return {
        "lost": lost,
        "harmless": {way: len(each) for way, each in harmless.items()},
        "together": {way: _without(subject, each, baseline)[way] for way, each in harmless.items()},
    }


def _without(subject: Subject, gone: list[str], baseline: Baseline) -> dict[str, float]:
    answers = evaluate_without(subject, [frozenset(gone)], baseline)
    return shares(subject, answers[frozenset(gone)])


def shares(subject: Subject, answers: Answers) -> dict[str, float]:
    """Sums that are right: wholly, and below 1000 with the leading 0 given for nothing."""
    leading = subject.places.index("10^3")
    zero = subject.examples.targets[:, leading] == 0
    rest = answers.right.clone()
    rest[:, leading] = True
    return {
        "sound": float(answers.exact.double().mean()),
        "as_reported": float((zero & rest.all(dim=1)).double().mean()),
    }


def _counts(seed: dict[str, Any]) -> dict[str, Any]:
    return {
        "seed": seed["seed"],
        "whole": seed["whole"],
        **{name: (seed[name]["harmless"], seed[name]["together"]) for name in ("zero", "optimal")},
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
