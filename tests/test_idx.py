"""The readers of IDX, gzip and Parquet: what they read, and that they refuse all else with a sentence."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from attnlab.data import idx_bytes, parquet
from attnlab.data.idx import check_counts, read_images, read_labels, write_images, write_labels
from attnlab.data.idx_bytes import gunzip
from attnlab.data.mnist_files import silent
from attnlab.data.parquet import read_parquet
from attnlab.errors import InputError
from made_up_digits import images, labels, png, write_table, zipped

T = TypeVar("T")

IMAGES = write_images(images(3))
LABELS = write_labels(labels(11))
PNG = png(images(1)[0])

EDITS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)


def edited(content: bytes, edits: list[tuple[int, int]]) -> bytes:
    """``content`` with some of its bytes changed."""
    changed = bytearray(content)
    for place, value in edits:
        changed[place % len(changed)] = value
    return bytes(changed)


def images_head(count: int, height: int = 28, width: int = 28) -> bytes:
    return b"\0\0\x08\x03" + struct.pack(">3I", count, height, width)


def test_images_round_trip() -> None:
    made = images(3)
    assert IMAGES[:16].hex(" ", 4) == "00000803 00000003 0000001c 0000001c"
    assert len(IMAGES) == 16 + 3 * 784
    assert torch.equal(read_images(IMAGES, "x"), made)
    assert int(read_images(IMAGES, "x")[1, 2, 5]) == IMAGES[16 + 784 + 2 * 28 + 5]


def test_labels_round_trip() -> None:
    assert LABELS.hex(" ", -4) == "00000801 0000000b 00030609 02050801 040700"
    assert read_labels(LABELS, "x").tolist() == [0, 3, 6, 9, 2, 5, 8, 1, 4, 7, 0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "x starts with nothing, but a file of images with 00 00 08 03"),
        (b"\0\0\x08", "x starts with 00 00 08, but a file of images with 00 00 08 03"),
        (b"\0\0\x0d\x03" + IMAGES[4:], "x starts with 00 00 0d 03, but a file of images with 00 00 08 03"),
        (
            zipped(IMAGES),
            "x starts with 1f 8b 08 00, but a file of images with 00 00 08 03; "
            "it is gzip, so its name should end in .gz",
        ),
        (
            LABELS,
            "x starts with 00 00 08 01, but a file of images with 00 00 08 03; "
            "it holds labels, so two files may be swapped",
        ),
        (IMAGES[:15], "x ends within its head: it has 15 bytes and needs 16"),
        (images_head(0), "x holds nothing: its head says 0; there must be at least one"),
        (images_head(1, 28, 29) + bytes(812), "x holds images of 28 x 29; they must be 28 x 28"),
        (IMAGES[:-1], "x is cut short: it has 2,367 bytes, and its head says 2,368"),
        (IMAGES + b"\0", "x goes on too long: it has 2,369 bytes, and its head says 2,368"),
        (
            images_head(2**32 - 1) + bytes(784),
            "x is cut short: it has 800 bytes, and its head says 3,367,254,359,296",
        ),
    ],
)
def test_wrong_images_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_images(content, "x")
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            IMAGES,
            "x starts with 00 00 08 03, but a file of labels with 00 00 08 01; "
            "it holds images, so two files may be swapped",
        ),
        (LABELS[:7], "x ends within its head: it has 7 bytes and needs 8"),
        (LABELS[:4] + bytes(4), "x holds nothing: its head says 0; there must be at least one"),
        (LABELS[:-1], "x is cut short: it has 18 bytes, and its head says 19"),
        (LABELS + b"\1", "x goes on too long: it has 20 bytes, and its head says 19"),
        (LABELS[:10] + b"\x0a" + LABELS[11:], "x has label 10 at place 2; labels are 0 to 9"),
    ],
)
def test_wrong_labels_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_labels(content, "x")
    assert str(caught.value) == sentence


def test_counts_must_agree() -> None:
    check_counts(images(3), labels(3), "a", "b")
    with pytest.raises(
        InputError, match=r"^a holds 3 images and b 5 labels; there must be one label an image$"
    ):
        check_counts(images(3), labels(5), "a", "b")


def test_gzip_of_several_members_is_unpacked() -> None:
    assert gunzip(zipped(b"two ") + zipped(b"parts"), "x") == b"two parts"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "x is not a gzip file: it starts with nothing, not 1f 8b"),
        (b"PK\3\4", "x is not a gzip file: it starts with 50 4b 03 04, not 1f 8b"),
        (
            IMAGES,
            "x is not a gzip file: it starts with 00 00 08 03, not 1f 8b; "
            "it is IDX already, so take .gz off its name",
        ),
        (
            zipped(IMAGES)[:-9],
            "x is a damaged gzip file: compressed file ended before the end-of-stream marker was reached",
        ),
    ],
)
def test_wrong_gzip_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        gunzip(content, "x")
    assert str(caught.value) == sentence


def test_a_gzip_bomb_is_stopped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = 0
    read = gzip.GzipFile.read

    def counted(file: gzip.GzipFile, size: int | None = -1) -> bytes:
        nonlocal unpacked
        piece = read(file, size)
        unpacked += len(piece)
        return piece

    bomb = zipped(bytes(2**24))
    assert len(bomb) < 2**15
    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    with pytest.raises(InputError, match="x unpacks to more than 3,000,000 bytes, the most it may hold"):
        gunzip(bomb, "x", 3_000_000)
    assert unpacked <= 3_000_000 + 2**20


def refused(read: Callable[..., T], *arguments: Any, start: str = "x ") -> T | None:
    """What ``read`` gives, or None if it refuses in one sentence about ``start``."""
    try:
        return read(*arguments)
    except InputError as error:
        sentence = str(error)
    assert sentence.startswith(start)
    assert "\n" not in sentence
    return None


def judge(content: bytes) -> None:
    """Either exactly these bytes again, or a sentence."""
    found, values = refused(read_images, content, "x"), refused(read_labels, content, "x")
    assert found is None or write_images(found) == content
    assert values is None or (write_labels(values) == content and int(values.max()) <= 9)


@given(EDITS, st.integers(0, 40), st.binary(max_size=3))
def test_edited_idx_files_are_read_or_refused(edits: list[tuple[int, int]], cut: int, more: bytes) -> None:
    small = [(place % 24, value) for place, value in edits]  # most of what can go wrong is in the head
    for content in (IMAGES, LABELS):
        for changed in (edited(content, edits), edited(content, small), content[:cut], content + more):
            judge(changed)


@given(st.binary(max_size=64))
@example(b"\0\0\x08\x03\0\0\0\x01\0\0\0\x1c\0\0\0\x1c")
@example(b"\0\0\x08\x01\xff\xff\xff\xff")
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    judge(content)
    judge(IMAGES[:4] + content)
    judge(LABELS[:4] + content)


@given(EDITS, st.integers(0, 10_000), st.binary(max_size=40))
@example([(3, 4)], 0, b"")  # a flag for an extra field: its length is read from what is no length
@example([(2, 7)], 0, b"")  # an unknown way to compress
def test_edited_gzip_is_read_or_refused(edits: list[tuple[int, int]], cut: int, junk: bytes) -> None:
    whole = zipped(LABELS)
    for content in (edited(whole, edits), whole[: cut % len(whole)], b"\x1f\x8b" + junk, whole + junk):
        unpacked = refused(gunzip, content, "x", 10_000)
        assert unpacked is None or len(unpacked) <= 10_000


def test_parquet_gives_the_same_files(tmp_path: Path) -> None:
    made, told = images(5), list[str]()
    path = write_table(tmp_path / "a.parquet", [png(image) for image in made], labels(5).tolist())
    assert read_parquet(path, told.append) == (write_images(made), write_labels(labels(5)))
    assert told == ["a.parquet: 0 of 5 images"]


def test_parquet_with_fewer_rows_than_its_head_says_is_refused() -> None:
    path = Path(__file__).parent / "fuzz/corpus/parquet.no-rows"
    with pytest.raises(InputError, match="is damaged: it holds 0 rows, but its head says 3"):
        read_parquet(path, silent)


@pytest.mark.parametrize(
    ("content", "label", "sentence"),
    [
        (PNG, 10, "row 1 has label 10; labels are 0 to 9"),
        (PNG, -1, "row 1 has label -1; labels are 0 to 9"),
        (PNG, None, "row 1 has label None; labels are 0 to 9"),
        (None, 1, "row 1 holds no PNG image"),
        (b"", 1, "row 1 holds no PNG image"),
        (PNG[:20], 1, "row 1 holds no PNG image"),
        (b"GIF89a", 1, "row 1 holds no PNG image"),
        (PNG + bytes(2**16), 1, "row 1 holds a PNG of 66,"),
        (png(images(1)[0], "RGB"), 1, "row 1 holds an image of mode RGB; it must be grey (L)"),
        (png(images(1)[0, :, :27].contiguous()), 1, "row 1 holds an image of 28 x 27; it must be 28 x 28"),
        (
            PNG[:16] + struct.pack(">2I", 60_000, 60_000) + PNG[24:],
            1,
            "row 1 holds an image of 60000 x 60000; it must be 28 x 28",
        ),
        (PNG[:33] + png(images(1)[0, :27].contiguous())[8:], 1, "row 1 holds a PNG with two sizes"),
        (PNG[:60], 1, "row 1 holds a damaged PNG: "),
    ],
)
def test_wrong_rows_are_refused(
    tmp_path: Path, content: bytes | None, label: int | None, sentence: str
) -> None:
    path = write_table(tmp_path / "a.parquet", [PNG, content], [1, label])
    with pytest.raises(InputError) as caught:
        read_parquet(path, silent)
    assert str(caught.value).startswith(f"{path}, {sentence}")


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": [b"x"], "digit": [1]}), path)
    with pytest.raises(InputError) as caught:
        read_parquet(path, silent)
    assert str(caught.value) == (
        f"{path} has the columns image (binary), digit (int64); "
        "digits need image, a struct with binary bytes, and label, an integer"
    )


def test_a_label_that_is_no_integer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": [{"bytes": PNG}], "label": ["1"]}), path)
    with pytest.raises(InputError, match=r"label \(string\); digits need image"):
        read_parquet(path, silent)


def test_limits_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_table(tmp_path / "a.parquet", [PNG] * 3, [1] * 3)
    monkeypatch.setattr(parquet, "ROW_LIMIT", 2)
    with pytest.raises(InputError, match=r"has 3 rows; there must be 1 to 2$"):
        read_parquet(path, silent)
    monkeypatch.undo()
    monkeypatch.setattr(parquet, "LIMIT", 100)
    with pytest.raises(InputError, match=r"unpacks to [0-9,]+ bytes; it may hold 100$"):
        read_parquet(path, silent)
    monkeypatch.setattr(parquet, "FILE_LIMIT", 50)
    with pytest.raises(InputError, match=r"bytes; a Parquet file of digits may have 50$"):
        read_parquet(path, silent)


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", [], [])
    with pytest.raises(InputError, match=r"has 0 rows; there must be 1 to 342,392$"):
        read_parquet(path, silent)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(InputError, match="is not a readable Parquet file: "):
        read_parquet(path, silent)
    path.write_bytes(b"PAR1 or not")
    with pytest.raises(InputError, match=r"a\.parquet is not a readable Parquet file: "):
        read_parquet(path, silent)


def judge_table(path: Path) -> None:
    files = refused(read_parquet, path, silent, start=str(path))
    assert files is None or len(read_images(files[0], "x")) == len(read_labels(files[1], "x"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("t") / "a.parquet", [PNG, PNG], [1, 2])


@given(edits=EDITS, cut=st.integers(0, 10_000))
def test_edited_tables_are_read_or_refused(table: Path, edits: list[tuple[int, int]], cut: int) -> None:
    whole = table.read_bytes()
    changed = table.with_name("b.parquet")
    for content in (edited(whole, edits), whole[: cut % len(whole)]):
        changed.write_bytes(content)
        judge_table(changed)


@given(edits=EDITS, cut=st.integers(0, 10_000))
def test_edited_pngs_are_read_or_refused(table: Path, edits: list[tuple[int, int]], cut: int) -> None:
    changed = table.with_name("c.parquet")
    behind = [(24 + place, value) for place, value in edits]
    judge_table(write_table(changed, [edited(PNG, edits)], [1]))
    judge_table(write_table(changed, [edited(PNG, behind), PNG[: cut % len(PNG)]], [1, 1]))


def test_limits_are_what_the_sentences_say() -> None:
    assert idx_bytes.LIMIT == 268_435_456
    assert parquet.ROW_LIMIT == 342_392
