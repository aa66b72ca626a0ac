"""Every reader of what somebody else may have written, as a function of bytes: it returns, or it raises a
``LabError``; all else is a fault.
"""

import atexit
import gzip
import io
import json
import shutil
import struct
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from mutations import Inputs, damaged, damaged_json, damaged_text, lines
from PIL import Image

from attnlab.analysis.lengths import read_lengths
from attnlab.analysis.subjects import read_example
from attnlab.cli.train import _read_spec as command_spec
from attnlab.data.idx_bytes import SIDE, check_images, check_labels, gunzip
from attnlab.data.image_files import load_images
from attnlab.data.mnist_files import silent
from attnlab.data.mnist_sources import read_members
from attnlab.data.parquet import read_parquet
from attnlab.data.pictures import read_picture, read_pixels
from attnlab.doctor.searched import diagnose_search, result_at
from attnlab.errors import LONGEST, LabError, printable
from attnlab.explorer.messages import read_frame, read_request, write_frame
from attnlab.explorer.messages import read_json as read_plain
from attnlab.explorer.page_state import PageState
from attnlab.models import build_for
from attnlab.notation import parse_head
from attnlab.problems.addition import Addition
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import check_length
from attnlab.problems.sorting.words import LENGTHS
from attnlab.runs import Ensemble, RunFolder, create_run, list_runs, save_weights
from attnlab.runs.files import first_manifest
from attnlab.specs import (
    PositionSpec,
    Seq2SeqModel,
    Spec,
    TokensModel,
    Training,
    read_variant,
    to_json,
)
from attnlab.specs.sizes import check_sizes
from attnlab.studies.jobs import Failure, failure
from attnlab.studies.outcome import read_results
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.studies.sweeps.outcome import collect_sweep
from attnlab.studies.sweeps.search import _compare
from attnlab.studies.travelling import unpack
from attnlab.tables.card import run_card
from attnlab.training import train_run
from made_up_sweeps import LR, in_memory, opened, play, short

ROOT = Path(__file__).parent.parent.parent
Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Target:
    """A reader, what it is given, and how many inputs the cheap part of the tests gives it."""

    name: str
    read: Read
    inputs: Inputs
    cheap: int = 40


def faultless(target: Target, given: bytes) -> None:
    """Read ``given``: a user error is right, and its sentence is printable in one go."""
    said = ""
    with warnings.catch_warnings(action="ignore"):
        try:
            target.read(given)
        except LabError as error:
            said = str(error)
    assert len(said) <= LONGEST
    printable(said).encode(errors="replace")


@cache
def scratch() -> Path:
    """In memory where there is such a thing: an input is not worth a write to a disk."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="attnlab-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def in_file(name: str, read: Callable[[Path], object]) -> Read:
    """A reader of a file."""

    def from_bytes(given: bytes) -> object:
        path = scratch() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(given)
        return read(path)

    return from_bytes


def texts(read: Callable[[str], object]) -> Read:
    return lambda given: read(given.decode(errors="replace"))


SPEC = Spec(
    task=Addition(digits=1, train=10, valid=5, test=5),
    model=Seq2SeqModel(width=4, heads=2, hidden=3, encoder_layers=1, decoder_layers=1),
    training=Training(epochs=4, batch=3, threads=1),
)
LISTS = Spec(task=Sorting(low=3, high=5), model=TokensModel(layers=1, window=2))
STEP = {
    "event": "step",
    "step": 1,
    "epoch": 0.5,
    "lr": 0.1,
    "loss": 2.0,
    "exact_match": 0.5,
    "seconds": 1.0,
}
EPOCH = {
    **{
        "event": "epoch",
        "epoch": 1,
        "step": 2,
        "loss": 1.0,
        "valid_loss": 1.5,
        "valid_token_accuracy": 0.5,
    },
    **{"valid_exact_match": 0.25, "seconds": 2.0, "best": True},
}
SUMMARY = {
    **{"steps": 2, "epochs": 1, "seconds": 1.5, "parameters": 300, "examples": {"train": 10}},
    "valid": {"exact_match": 0.5, "loss": 1.0},
}
LAYER = {"gradient": 1.0, "weight": 2.0, "update": None, "inward": 0.1}
OBSERVED = {
    **{"total": 2, "steps": 2, "starts": [0], "diverged": None, "unseen": {}},
    "samples": [
        {"step": 1, "loss": 2.0, "lr": 0.1, "gradient": 1.0, "nonfinite": 0.0, "layers": {"readout": LAYER}}
    ],
    "losses": [{"step": 2, "loss": 2.0, "highest": 2.5}],
    "answers": {"seen": {"1": 3}, "predicted": {"2": 3}, "silent": {}, "between": {}},
    "inputs": {"mean": None, "std": None, "repeated": 0.0},
}
VERIFIED = {"weights": "none", "correct": 3, "total": 100}
TESTED = {"weights": "none", "exact_match": 0.5, "examples": 7}
ENSEMBLE = {"runs": ["zoo:digit", "../run"], "valid": {"exact_match": 0.5}}
SEARCHED = {"format": 1, "search": "SweepFile()", "base": to_json(SPEC), "seed": 3}
VARIANTS = ["rotary:base=500", "learned:length=8,scale=.1"]
GREY, COLOURS = ("PNG", "GIF", "BMP", "JPEG", "TIFF", "PPM"), (("PNG", "RGBA"), ("WEBP", "RGB"))
STATES = ["run=zoo:adder&text=374%2B814&edits=off~encoder.0.self.0~zero", "pixels=1x2x2.AAQB"]
SWEEP = """
task: addition
method: tpe
trials: 3
metric: {name: valid_exact_match, goal: maximize}
parameters:
  training.lr: {min: 1e-4, max: 0.1, distribution: log_uniform_values}
  model.positions: {values: [rotary, "learned:length=64"]}
  training.epochs: {value: 2}
"""
SHORT = "task: addition\ntrials: 5\nsearch:\n  training.lr: log 1e-4 .. 1e-1\n  model.width: [16, 32]\n"


@cache
def run() -> RunFolder:
    """A run folder that was never trained, but says that it was."""
    made = create_run(scratch() / "runs" / "run", SPEC)
    made.file("manifest.json").unlink()  # the readers themselves are asked
    write(made.path, "metrics.jsonl", "\n".join(map(json.dumps, (STEP, EPOCH, ""))).encode()[:-2])
    write(made.path, "summary.json", json.dumps(SUMMARY).encode())
    write(made.path, "observed.json", json.dumps(OBSERVED).encode())
    write(made.path, "analysis/verify.json", json.dumps(VERIFIED).encode())
    write(made.path, "analysis/evaluate-test.json", json.dumps(TESTED).encode())
    return made


def write(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def of_run(name: str) -> Read:
    """Read all that is said of a run, with one of its files as given."""

    def read(given: bytes) -> None:
        path = run().path / name
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(given)
        opened = RunFolder(run().path)
        try:
            list_runs(run().path.parent).tables()
            for ask in (opened.metrics, opened.observed, opened.environment, opened.summary):
                with suppress(LabError):
                    result: Any = ask()
                    if hasattr(result, "records"):
                        result.tables()
            with suppress(LabError):
                run_card(opened)
            failure(opened)
            opened.spec()
        finally:
            path.unlink() if before is None else path.write_bytes(before)

    return read


def read_task(task: Any) -> Read:
    return texts(lambda text: read_example(task, 0, text))


def read_spec(path: Path) -> object:
    """As ``train --spec`` does, and what is weighed before a run is made."""
    spec = command_spec(path)
    check_sizes(spec)
    return to_json(spec)


def read_frames(given: bytes) -> object:
    plain, numbers = read_frame(given)
    return read_request(plain, numbers)


def read_page_state(text: str) -> object:
    state = PageState.read(text)
    return state.off, state.with_input("1+1").write(), state.question()


def picture(ending: str, mode: str = "L", size: tuple[int, int] = (7, 5)) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, 3).save(file, ending)
    return file.getvalue()


def idx(magic: int, *shape: int) -> bytes:
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + bytes(int(np.prod(shape)))


@cache
def parquet() -> bytes:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    image = {"bytes": picture("PNG", size=(SIDE, SIDE)), "path": None}
    table = pa.table({"image": pa.array([image] * 3, type=kind), "label": pa.array([0, 1, 1])})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


@cache
def archive() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in (("package/train.idx1-ubyte", idx(2049, 3)), ("package/x.txt", b"x")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


@cache
def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, images=np.zeros((12, 4, 4), np.uint8), labels=np.arange(12) % 2)
    return file.getvalue()


MEMBERS: dict[str, "np.ndarray[Any, Any]"] = {
    "images": np.zeros((12, 4, 4), np.uint8),
    "labels": np.arange(12) % 2,
    "classes": np.array(["a", "b"]),
}
NAMED = {"info": {"features": {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}}}


def member(name: str) -> bytes:
    file = io.BytesIO()
    np.save(file, MEMBERS[name])
    return file.getvalue()


def read_images(path: Path) -> object:
    """Anew: what was read is remembered by its path."""
    load_images.cache_clear()
    return load_images(str(path))


def read_member(given: bytes) -> object:
    """Arrays of which one is as given, with a checksum that fits."""
    path, changed = scratch() / "inside.npz", [*MEMBERS][len(given) % len(MEMBERS)]
    with zipfile.ZipFile(path, "w") as file:
        for name in MEMBERS:
            file.writestr(f"{name}.npy", given if name == changed else member(name))
    return read_images(path)


def read_table(given: bytes) -> object:
    """A folder of tables whose metadata are as given."""
    folder = scratch() / "tables"
    folder.mkdir(exist_ok=True)
    with pq.ParquetFile(io.BytesIO(parquet())) as file:
        table = file.read().replace_schema_metadata({b"huggingface": given})
    for part in ("train", "test"):
        pq.write_table(table, folder / f"{part}-0.parquet")
    return read_images(folder)


@cache
def trained() -> RunFolder:
    """A run whose training was stopped after its first step: weights, and the state of its training."""
    made = create_run(scratch() / "trained", SPEC)
    stops = iter([False, False, True, True])
    train_run(made, stopping=lambda: next(stops))
    save_weights(made, "best", build_for(SPEC).state_dict())
    return made


def put(name: str, given: bytes) -> None:
    """A file of that run, in which no manifest binds anything: the reader itself is asked."""
    trained().file("manifest.json").unlink(missing_ok=True)
    trained().file(name).write_bytes(given)


def read_weights(given: bytes) -> object:
    put("best.safetensors", given)
    return RunFolder(trained().path).model


def read_state(given: bytes) -> None:
    """Go on with the training by one step."""
    put("state.safetensors", given)
    torch.manual_seed(0)
    stops = iter([False, False, True, True])
    train_run(RunFolder(trained().path), stopping=lambda: next(stops, True))


def read_study(path: Path) -> object:
    found = read_results(path.parent)
    return None if found is None else (found.tables(), found.records(), found.figures())


def read_runs(path: Path) -> object:
    return Ensemble(path.parent).runs()


def read_search(path: Path) -> None:
    _compare(path, SEARCHED)


def read_swept(path: Path) -> object:
    """As the doctor reads it."""
    found = result_at(path)
    return None if found is None else (found.records(), found.tables(), diagnose_search(found).tables())


@cache
def swept() -> Any:
    """What a small sweep found."""
    with in_memory() as place, opened(short(LR, count=2), place, count=2) as sweep:
        play(sweep, place / "pool")
        return collect_sweep(sweep, place / "pool", command="").to_json()


def manifest() -> Any:
    """Of the run as it is."""
    names = ("spec.json", "environment.json", "metrics.jsonl", "summary.json")
    return json.loads(first_manifest({name: run().file(name).read_bytes() for name in names}))


def unpack_run(given: bytes) -> None:
    names = given.decode(errors="replace").split("\n")
    folder = scratch() / "unpacked"
    folder.mkdir(exist_ok=True)
    unpack({name[:200]: name.encode(errors="replace") for name in names}, folder)


def kept(path: str) -> Any:
    return json.loads((ROOT / path).read_text())


def frame(body: Any) -> bytes:
    return write_frame({"id": 1, "kind": "run", "run": "zoo:adder", **body})


@cache
def targets() -> dict[str, Target]:
    """All of them by name."""
    sums, lists = ["374+814", " 0 + 007", "999+1", "test:3"], ["3 5 5 9 8", "1, 2,3", "valid:7", "99 0"]
    state, weights = (trained().file(f"{name}.safetensors").read_bytes() for name in ("state", "best"))
    studies = [kept("results/addition-seeds/study.json")]
    adder = to_json(Spec(task=Addition(), model=Seq2SeqModel()))
    question = {"input": {"text": "1+1"}, "edits": [], "want": {"maps": True}}
    found = [
        Target("sums", read_task(Addition()), damaged_text(sums)),
        Target("lists", read_task(Sorting()), damaged_text(lists)),
        Target("heads", texts(parse_head), damaged_text(["encoder.1.self.3", "decoder.0.cross.2"])),
        Target(
            "lengths",
            texts(partial(read_lengths, check=check_length, example=LENGTHS)),
            damaged_text(["8,12,16", "16,32,...,256"]),
        ),
        Target(
            "variant",
            texts(variant),
            damaged_text(["rotary:base=500", "learned:length=8,scale=.1"]),
        ),
        Target(
            "spec", in_file("spec.json", read_spec), damaged_json([to_json(SPEC), to_json(LISTS), adder])
        ),
        Target("sweep", in_file("sweep.yaml", read_sweep_file), damaged([SWEEP.encode(), SHORT.encode()])),
        Target("picture", pictures, damaged([picture(kind) for kind in GREY])),
        Target(
            "colours",
            pictures,
            damaged([picture(*kind) for kind in COLOURS]),
        ),
        Target("idx-images", lambda given: check_images(given, "x", None), damaged([idx(2051, 3, 28, 28)])),
        Target("idx-labels", lambda given: check_labels(given, "x"), damaged([idx(2049, 9)])),
        Target("gzip", lambda given: gunzip(given, "x", 2**20), damaged([gzip.compress(bytes(50_000))])),
        Target(
            "parquet",
            in_file("x.parquet", lambda path: read_parquet(path, silent)),
            damaged([parquet()]),
        ),
        Target("arrays", in_file("images.npz", read_images), damaged([arrays()])),
        Target("arrays-inside", read_member, damaged([member(name) for name in MEMBERS])),
        Target("table-names", read_table, damaged_json([NAMED])),
        Target("tar", lambda given: list(read_members(given, ["train-idx1-ubyte"])), damaged([archive()])),
        Target("run-spec", of_run("spec.json"), damaged_json([to_json(SPEC)]), cheap=20),
        Target("run-metrics", of_run("metrics.jsonl"), lines([STEP, EPOCH]), cheap=20),
        Target("run-summary", of_run("summary.json"), damaged_json([SUMMARY]), cheap=20),
        Target("run-observed", of_run("observed.json"), damaged_json([OBSERVED]), cheap=20),
        Target("run-environment", of_run("environment.json"), damaged_json([environment()]), cheap=20),
        Target(
            "run-verified",
            of_run("analysis/verify.json"),
            damaged_json([{"weights": "none", "correct": 3, "total": 100}]),
        ),
        Target(
            "run-tested",
            of_run("analysis/evaluate-test.json"),
            damaged_json([{"weights": "none", "exact_match": 0.5, "examples": 7}]),
        ),
        Target("run-manifest", of_run("manifest.json"), damaged_json([manifest()]), cheap=20),
        Target("run-error", of_run("error.json"), damaged_json([Failure(error="x").to_json()]), cheap=20),
        Target("ensemble", in_file("both/ensemble.json", read_runs), damaged_json([ENSEMBLE])),
        Target("sweep-folder", in_file("sweep/sweep.json", read_search), damaged_json([SEARCHED])),
        Target("sweep-result", in_file("swept/trials.json", read_swept), damaged_json([swept()]), cheap=5),
        Target("weights", read_weights, damaged([weights]), cheap=10),
        Target("state", read_state, damaged([state]), cheap=5),
        Target("study", in_file("study/study.json", read_study), damaged_json(studies), cheap=5),
        Target(
            "frames",
            read_frames,
            damaged([frame({"kind": "ask", "body": question}), frame({"kind": "list"})]),
        ),
        Target(
            "messages", messages, damaged_json([{"id": 1, "kind": "ask", "run": "x", "body": question}])
        ),
        Target(
            "page-state",
            texts(read_page_state),
            damaged_text(STATES),
        ),
        Target("came-back", unpack_run, damaged([b"spec.json\nanalysis/x.json\n../out"]), cheap=10),
        Target(
            "own-task",
            in_file("task.py.json", own_task),
            damaged_json([{**to_json(SPEC), "source": "0" * 64}]),
        ),
    ]
    return {each.name: each for each in found}


def variant(text: str) -> object:
    return read_variant(PositionSpec, text)


def pictures(given: bytes) -> None:
    for read in (read_picture, read_pixels):
        with suppress(LabError):
            read(given, "x")


def messages(given: bytes) -> object:
    return read_request(read_plain(given), b"\0" * 64)


def own_task(path: Path) -> object:
    """A spec whose task is in a file that is not here."""
    return command_spec(path)


def environment() -> Any:
    return json.loads(run().file("environment.json").read_text())
