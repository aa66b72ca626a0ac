"""Files that are damaged, or made to harm: one sentence, and no more memory than the limits say."""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
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


def test_a_folder_that_may_not_be_entered_is_no_end_of_the_list(
    trained: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.stat

    def stat(path: Any, *given: Any, **named: Any) -> os.stat_result:
        if "closed" in str(path) and str(path).endswith("spec.json"):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *given, **named)

    (trained.path.parent / "closed").mkdir()
    monkeypatch.setattr(os, "stat", stat)
    assert [each.run for each in list_runs(trained.path.parent).runs] == ["run"]
    (trained.path.parent / "closed").rmdir()


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


def member(array: "np.ndarray[Any, Any]") -> bytes:
    """As it lies in an ``.npz`` file."""
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


GREYS, NUMBERS = member(np.zeros((12, 2, 2), np.uint8)), member(np.arange(12) % 2)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"images.npy": GREYS, "labels.npy": member(np.full(12, 2**40))}, "1,099,511,627,777 classes"),
        (
            {"images.npy": GREYS, "labels.npy": NUMBERS, "classes.npy": member(np.array("a"))},
            "its 1 classes",
        ),
        (
            {"images.npy": GREYS, "labels.npy": NUMBERS, "classes.npy": member(np.zeros(70_001, "U1"))},
            "has 70,001 classes; there may be 65,536",
        ),
        ({"images": b"no array", "labels.npy": NUMBERS}, r"images has the shape \(\) of "),
    ],
)
def test_members_of_arrays_that_stand_for_something_else(
    members: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    """A label such as 2^40 would stand for as many classes."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(InputError, match=said):
        load_images(str(tmp_path / "x.npz"))


def write_table(path: Path, content: bytes, metadata: str, rows: int = 3) -> None:
    kind = pa.struct([("bytes", pa.binary())])
    images, labels = pa.array([{"bytes": content}] * rows, type=kind), pa.array([0, 1] * rows)[:rows]
    table = pa.table({"image": images, "label": labels})
    pq.write_table(table.replace_schema_metadata({b"huggingface": metadata.encode()}), path)


def png(side: int) -> bytes:
    file = BytesIO()
    Image.new("L", (side, side)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    "metadata",
    ["[]", '{"info": []}', '{"info": {"features": {"label": 3}}}', "{}",
     '{"info": {"features": {"label": {"names": 5}}}}', '{"info": {"features": {"label": {"names": {}}}}}'],
)  # fmt: skip
def test_metadata_of_a_table_that_names_no_classes(metadata: str, tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_table(tmp_path / f"{part}-0.parquet", png(5), metadata)
    assert load_images(str(tmp_path)).classes == ("0", "1")


def test_metadata_of_a_table_that_is_no_json(tmp_path: Path) -> None:
    for metadata, said in (
        ("x", "Expecting value"),
        ("[" * 9999, "100 levels"),
        (" " * 2**23, "8,388,608"),
    ):
        write_table(tmp_path / "train-0.parquet", png(5), metadata)
        with pytest.raises(InputError, match=f"is not a readable Parquet file: .*{said}"):
            load_images(str(tmp_path))


def test_a_large_picture_that_many_rows_share_is_refused_before_the_second(tmp_path: Path) -> None:
    """Decoded they would take 25 GB."""
    write_table(tmp_path / "train-0.parquet", png(5000), "{}", rows=1000)
    with pytest.raises(InputError, match="1,000 images of 5000 x 5000 pixels are too many"):
        load_images(str(tmp_path))


def test_a_picture_of_a_class_that_is_too_long(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(6):
            (tmp_path / name / f"{number}.png").write_bytes(png(5))
    os.truncate(tmp_path / "b" / "3.png", 2**27 + 1)
    said = r"picture '.*3\.png' cannot be read \(it has 134,217,729 bytes; at most 134,217,728 are read\)"
    with pytest.raises(InputError, match=said):
        load_images(str(tmp_path))


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


def test_a_catalogue_that_is_no_regular_file(tmp_path: Path) -> None:
    said = attnlab("study", "list", "--catalogue", "/dev/zero", cwd=tmp_path, code=2).stderr
    assert said == "attnlab: catalogue /dev/zero cannot be run (ValueError: it is not a regular file)\n"


def test_a_task_that_is_no_regular_file(tmp_path: Path) -> None:
    for name, reason in (("/dev/zero", "it is not a regular file"), (str(tmp_path), "is a directory")):
        said = attnlab("runs", "--tasks", name, cwd=tmp_path, code=2).stderr
        assert f"{name} cannot be read as Python" in said
        assert reason in said.lower()
