"""Files that are damaged, or made to harm: one sentence, and no more memory than the limits say."""

import gzip
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from attnlab.data.image_files import load_images
from attnlab.data.mnist_sources import read_members
from attnlab.errors import InputError, RunError
from attnlab.runs import RunFolder, create_run, list_runs
from attnlab.studies import travelling
from attnlab.studies.travelling import pack, unpack
from attnlab.tables.card import run_card
from attnlab.training import train_run
from commands import attnlab
from tiny import tiny

SUMMARY = '{"steps": 1, "epochs": 1, "seconds": 1.5, "parameters": 1, "valid": {"exact_match": 1}}'


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = create_run(tmp_path_factory.mktemp("damaged") / "runs" / "run", tiny())
    train_run(run)
    run.keep_analysis("verify", {"correct": 3, "total": 100})
    run.keep_analysis("evaluate-test", {"exact_match": 0.5, "examples": 7})
    return run


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.jsonl", '{"event": []}\n'),
        ("metrics.jsonl", '{"event": {"step": 1}}\n[]\n'),
        ("metrics.jsonl", "[" * 100_000 + "\n"),
        ("summary.json", "{}"),
        (
            "summary.json",
            '{"steps": 1, "epochs": 1, "seconds": NaN, "parameters": 1, "valid": {"exact_match": 1}}',
        ),
        ("summary.json", SUMMARY.replace("exact_match", "exact")),
        ("spec.json", '{"task": []}'),
        ("analysis/verify.json", '{"weights": "WEIGHTS"}'),
        ("analysis/verify.json", '{"weights": "WEIGHTS", "correct": [], "total": 1}'),
    ],
)
def test_one_damaged_run_is_a_line_of_the_list(name: str, content: str, trained: RunFolder) -> None:
    weights = json.loads(trained.file("analysis/verify.json").read_text())["weights"]
    before = trained.file(name).read_bytes()
    trained.write({name: content.replace("WEIGHTS", weights).encode()})
    try:
        (row,) = list_runs(trained.path.parent).runs
        assert "is damaged: " in row.status
        assert attnlab("runs", trained.path.parent, cwd=trained.path).stdout
    finally:
        trained.write({name: before})
    assert list_runs(trained.path.parent).runs[0].status == "finished"


def test_a_card_of_a_run_whose_analysis_is_damaged(trained: RunFolder) -> None:
    name = "analysis/evaluate-test.json"
    before = trained.read(name)
    trained.write({name: before.replace(b"0.5", b"[]")})
    try:
        with pytest.raises(RunError, match=r"evaluate-test.json is wrong \(it.exact_match is \[\]"):
            run_card(trained)
    finally:
        trained.write({name: before})


def put(run: RunFolder, tensors: dict[str, Tensor], facts: dict[str, str]) -> None:
    """A training state, as if it had been written so."""
    run.write({"state.safetensors": save(tensors, facts)})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("exp_avg", "exp_bvg", "an optimiser has "),
        ("optimiser.0.0.exp_avg", "optimiser.0.x.exp_avg", "invalid literal"),
        ("optimiser.0.0.step", "optimiser", "an optimiser has "),
    ],
)
def test_names_of_tensors_of_an_optimiser(old: str, new: str, said: str, tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny())
    stops = iter([False, False, True, True])
    train_run(run, stopping=lambda: next(stops))
    path = run.file("state.safetensors")
    with safe_open(path, framework="pt") as file:
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = file.metadata()
    put(run, {name.replace(old, new): value for name, value in held.items()}, facts)
    with pytest.raises(RunError, match=f"state.safetensors does not fit the run's spec .*{said}"):
        train_run(run)
    shapes = {name: value[:1] if name.endswith("exp_avg") else value for name, value in held.items()}
    put(run, shapes, facts)
    with pytest.raises(RunError, match=r"exp_avg of an optimiser is \(1,"):
        train_run(run)
    for numbers in ("[" * 3000, "[]", '{"spec": 1}', "x"):
        put(run, held, {"numbers": numbers})
        with pytest.raises(RunError):
            train_run(run)


def test_a_sparse_member_of_an_archive_may_not_be_larger_than_it(tmp_path: Path) -> None:
    """A header of 512 bytes that stands for a tebibyte of zeros."""
    member = tarfile.TarInfo("train-labels-idx1-ubyte")
    member.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"\x80" + (2**40).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    packed = gzip.compress(bytes(header) + bytes(1024))
    with pytest.raises(InputError, match="has 1,099,511,627,776 bytes; 268,435,456 are read"):
        list(read_members(packed, ["train-labels-idx1-ubyte"]))


def test_arrays_that_unpack_to_more_than_is_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", images=np.zeros((3, 2, 2), np.uint8))
    with zipfile.ZipFile(tmp_path / "x.npz") as file:
        (held,) = file.infolist()
    raw = (tmp_path / "x.npz").read_bytes()
    lying = raw.replace(held.file_size.to_bytes(4, "little"), (2**31 + 1).to_bytes(4, "little"))
    (tmp_path / "x.npz").write_bytes(lying)
    with pytest.raises(InputError, match="unpacks to 2,147,483,649 bytes; 2,147,483,648 are read"):
        load_images(str(tmp_path / "x.npz"))


BOMB = """
import resource, sys
from pathlib import Path
from attnlab.data.parquet import opened, rows_of
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with opened(Path(sys.argv[1])) as file:
    rows = list(rows_of(file))
assert len(rows) == 1000 and all(len(image) == 2**18 for image, _ in rows)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_one_image_that_many_rows_share_is_held_once(tmp_path: Path) -> None:
    """Written out it would take 256 MiB, of a file of 2 KiB."""
    kind = pa.struct([("bytes", pa.binary())])
    images = pa.array([{"bytes": bytes(2**18)}] * 1000, type=kind)
    pq.write_table(
        pa.table({"image": images, "label": pa.array([1] * 1000)}), tmp_path / "x", compression="zstd"
    )
    assert (tmp_path / "x").stat().st_size < 10_000
    words = [sys.executable, "-c", BOMB, str(tmp_path / "x")]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert int(said) < 150


def test_runs_beyond_a_limit_do_not_travel(
    trained: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pack(trained.path)
    size = sum(map(len, packed.values()))
    monkeypatch.setattr(travelling, "MOST_BYTES", size - 1)
    said = f"files of {size:,} bytes together; at most 10,000 files and {size - 1:,} bytes travel"
    monkeypatch.setattr(RunFolder, "read", None)  # it is weighed before it is read
    with pytest.raises(RunError, match=said):
        pack(trained.path)
    with pytest.raises(RunError, match=said):
        unpack(packed, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_spec_that_is_no_regular_file(tmp_path: Path) -> None:
    for name in ("/dev/zero", "/dev/stdin", str(tmp_path)):
        assert "cannot be read as JSON" in attnlab("train", "--spec", name, cwd=tmp_path, code=2).stderr


def test_a_task_that_is_no_regular_file(tmp_path: Path) -> None:
    for name, reason in (("/dev/zero", "it is no regular file"), (str(tmp_path), "is a directory")):
        said = attnlab("runs", "--tasks", name, cwd=tmp_path, code=2).stderr
        assert f"{name} cannot be read as Python" in said
        assert reason in said.lower()
