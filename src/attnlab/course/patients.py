"""Small trainings: the sick ones of lesson 5, and what answers ask to train. They last as long as
the process."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

from attnlab.front.run import Run
from attnlab.front.specs import spec
from attnlab.runs import create_run
from attnlab.specs import Spec, whole_key
from attnlab.training import train_run

HEALTHY: dict[str, Any] = {
    "digits": 2,
    "width": 32,
    "hidden": 64,
    "heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "epochs": 5,
    "lr": 0.01,
    "seed": 0,
    "threads": 1,
}
"""Sums of two digits, learned in seconds."""
SICK: dict[str, dict[str, Any]] = {
    "a": {"lr": 1.0},
    "b": {"lr": 1e-5},
    "c": {"batch": 4096},
}
"""What was changed in each patient."""
PLANTED = {"a": "rate-too-high", "b": "rate-too-low", "c": "batch-too-large"}
"""The kind of fault that this is. A training that diverges depends on rounding, so on some processors the
doctor puts a symptom above it.
"""


@final
@dataclass(frozen=True)
class Patient:
    """A training that fails: the kinds of fault that the doctor finds, causes first, and its accuracy."""

    kinds: tuple[str, ...]
    explained_by: Mapping[str, str]
    accuracy: float


def patient_spec(name: str, **cure: Any) -> Spec:
    """What a patient is trained with, after its ``cure``."""
    return spec("addition", **{**HEALTHY, **SICK[name], **cure})


def command_of(name: str) -> str:
    """How a patient is trained in a shell."""
    made = spec("addition")
    settings = {whole_key(made, key): value for key, value in (HEALTHY | SICK[name]).items()}
    flags = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in settings.items())
    return f"attnlab train addition {flags} --out runs/{name}"


def diagnosed(name: str) -> Patient:
    """Train a patient and ask the doctor."""
    return diagnose_spec(patient_spec(name))


@cache
def diagnose_spec(made: Spec) -> Patient:
    """Train a spec and ask the doctor."""
    run = train_once(made)
    found = run.diagnose()
    causes = {each.kind: each.explained_by for each in found.findings if each.explained_by}
    return Patient(tuple(found.kinds), causes, valid_accuracy(run))


def valid_accuracy(run: Run) -> float:
    """The share of right validation answers when training ended."""
    return run.evaluate(split="valid").exact_match


@cache
def train_once(made: Spec) -> Run:
    """A run of ``made``, in a folder that goes when the process ends."""
    path = Path(_folder().name) / str(len(list(Path(_folder().name).iterdir())))
    train_run(create_run(path, made.settled()))
    return Run(path)


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="attnlab-course-")
