"""Pictures as people have them: found, cleaned, centred as in MNIST, and refused in one sentence."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy import ndarray
from PIL import Image
from scipy.ndimage import gaussian_filter

from attnlab.analysis.image_classifier import ImageClassifier, Member, image_classifier
from attnlab.analysis.samples import Sample, expand, read_inputs
from attnlab.cli.predict_pictures import beside
from attnlab.data import pictures as pictures_module
from attnlab.data.ink import centred, find_ink, read_digits
from attnlab.data.mnist import load_digits_data
from attnlab.data.pictures import pictures_in, read_picture, read_pixels
from attnlab.errors import InputError
from attnlab.figures.braille import card
from attnlab.models import build_model
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.specs import PatchSeq2SeqModel
from attnlab.storage import as_json
from commands import attnlab, complaint
from tiny_digits import untrained_digits, write_squares


@pytest.fixture(scope="module")
def digits() -> ndarray:
    """Some real digits, which are bundled."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MNIST_MIRRORS", "MNIST_NPM"):
            patch.setenv(f"ATTNLAB_{name}", "")
        patch.setenv("ATTNLAB_CACHE", "/nonexistent")
        return load_digits_data(None).test_images[:97].numpy()


def saved(image: Image.Image, kind: str = "PNG", **how: int) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def read(image: Image.Image, kind: str = "PNG", **how: int) -> ndarray:
    return read_digits(read_picture(saved(image, kind, **how), "it"), "it")


def near(one: ndarray, other: ndarray) -> float:
    """How alike two images are: the cosine between them, a little blurred."""
    a, b = (gaussian_filter(image.astype(float), 1).ravel() for image in (one, other))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF", "PPM"])
def test_a_digit_of_mnist_comes_back_as_it_was(digits: ndarray, kind: str) -> None:
    for digit in digits[:17]:
        assert np.array_equal(read(Image.fromarray(digit), kind), digit)
        assert np.array_equal(read(Image.fromarray(255 - digit), kind), digit)


def test_most_digits_of_mnist_come_back_as_they_were(digits: ndarray) -> None:
    same = [np.array_equal(read(Image.fromarray(255 - digit)), digit) for digit in digits]
    assert np.mean(same) >= 0.98


def enlarged(digit: ndarray, ink: int, paper: int, side: int = 311) -> ndarray:
    large = np.asarray(Image.fromarray(digit).resize((side, side), Image.Resampling.BICUBIC)) / 255
    return np.rint(paper + (ink - paper) * large).astype(np.uint8)


def photograph(digit: ndarray) -> Image.Image:
    """Off the middle, unevenly lit, noisy, in colour, as JPEG."""
    rng = np.random.default_rng(5)
    down, across = np.mgrid[0:509, 0:421]
    page = np.full((509, 421), 215.0)
    page[150:461, 90:401] = enlarged(digit, 60, 215)
    page = page * (0.6 + 0.25 * down / 509 + 0.15 * across / 421) + rng.normal(0, 4, page.shape)
    grey = np.clip(page, 0, 255).astype(np.uint8)
    return Image.open(
        io.BytesIO(saved(Image.merge("RGB", [Image.fromarray(grey)] * 3), "JPEG", quality=70))
    )


def transparent(digit: ndarray, ink: int) -> Image.Image:
    pixels = np.full((28, 28, 4), ink, dtype=np.uint8)
    pixels[..., 3] = digit
    return Image.fromarray(pixels)


def paletted(digit: ndarray) -> Image.Image:
    return Image.fromarray(255 - digit).convert("RGB").quantize(64)


WAYS: dict[str, Callable[[ndarray], Image.Image]] = {
    "dark on light": lambda digit: Image.fromarray(enlarged(digit, 50, 230)),
    "light on dark": lambda digit: Image.fromarray(enlarged(digit, 240, 40)),
    "blue on yellow": lambda digit: Image.composite(
        Image.new("RGB", (28, 28), "navy"), Image.new("RGB", (28, 28), "gold"), Image.fromarray(digit)
    ),
    "a photograph": photograph,
    "transparent, black ink": lambda digit: transparent(digit, 0),
    "transparent, white ink": lambda digit: transparent(digit, 255),
    "a palette": paletted,
    "16 bits": lambda digit: Image.fromarray(digit.astype(np.uint16) * 200 + 1000),
    "CMYK": lambda digit: Image.fromarray(255 - digit).convert("CMYK"),
    "at the corner of a wide page": lambda digit: _on_page(digit, 400, 90),
    "one bit": lambda digit: Image.fromarray(enlarged(digit, 0, 255)).convert(
        "1", dither=Image.Dither.NONE
    ),
}


def _on_page(digit: ndarray, width: int, height: int) -> Image.Image:
    page = Image.new("L", (width, height), 255)
    page.paste(Image.fromarray(255 - digit), (1, 1))
    return page


@pytest.mark.parametrize("way", WAYS)
def test_however_it_was_made_the_digit_is_found(digits: ndarray, way: str) -> None:
    for place, digit in enumerate(digits[:11]):
        image = WAYS[way](digit)
        kind = "TIFF" if image.mode == "CMYK" else "PNG"
        found = read(image, kind)
        assert near(found, digit) > 0.9
        assert np.argmax([near(found, other) for other in digits]) == place


def test_turned_by_its_camera_a_picture_is_turned_back(digits: ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    content = io.BytesIO()
    Image.fromarray(255 - digits[0]).rotate(90).save(content, "PNG", exif=exif)
    assert np.array_equal(read_digits(read_picture(content.getvalue(), "it"), "it"), digits[0])


def test_thin_lines_get_the_width_of_a_pen() -> None:
    page = np.zeros((601, 601))
    page[40:560, 299:301] = 1
    bar = centred(page)
    assert (bar.sum(axis=1) > 0).sum() == 20
    assert bar[14].astype(float).sum() / 255 == pytest.approx(2, abs=0.35)
    thick = np.zeros((601, 601))
    thick[40:560, 250:350] = 1
    assert centred(thick)[14].astype(float).sum() / 255 == pytest.approx(100 / 26, abs=0.3)


@given(st.integers(1, 61), st.integers(1, 61), st.integers(0, 2**31))
def test_any_ink_is_scaled_to_20_and_centred(height: int, width: int, seed: int) -> None:
    ink = np.random.default_rng(seed).random((height, width))
    placed = centred(ink)
    down, across = np.flatnonzero(placed.any(axis=1)), np.flatnonzero(placed.any(axis=0))
    sides = (down[-1] - down[0] + 1, across[-1] - across[0] + 1)
    assert max(sides) <= 20
    mass = placed.astype(float)
    for axis, box in ((0, down), (1, across)):
        centre = (mass.sum(axis=1 - axis) * np.arange(28)).sum() / mass.sum()
        assert 13.4 <= centre <= 14.6 or box[0] == 0 or box[-1] == 27  # it goes no further


def test_a_faint_digit_beside_dark_ones_is_read(digits: ndarray) -> None:
    """Thin lines on a large page: each digit is as dark as its own ink."""
    page = np.full((400, 400), 255, dtype=np.uint8)
    for top, left, grey in ((20, 90, 0), (20, 290, 0), (220, 90, 0), (220, 290, 150)):
        page[top : top + 150, left : left + 4] = grey
    placed = read_digits(read_picture(saved(Image.fromarray(page)), "it"), "it", rows=2, columns=2)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        cell = placed[28 * row : 28 * row + 28, 28 * column : 28 * column + 28]
        assert (cell.sum(axis=1) > 0).sum() == 20


def test_sixteen_bits_are_a_scale_of_their_own(digits: ndarray) -> None:
    deep = digits[0].astype(np.uint16) * 257
    assert np.array_equal(read(Image.fromarray(deep)), digits[0])
    page = np.full((60, 60), 65_000, dtype=np.uint16)
    page[30, 30] -= 1
    with pytest.raises(InputError, match="no ink"):
        read(Image.fromarray(page))


def test_specks_do_not_move_a_digit(digits: ndarray) -> None:
    page = np.asarray(_on_page(digits[0], 90, 90)).copy()
    page[80, 85] = 0
    assert np.array_equal(read(Image.fromarray(page)), digits[0])


def test_grids_are_cut_in_cells(digits: ndarray) -> None:
    rows = [np.concatenate(list(digits[start : start + 3]), axis=1) for start in (0, 3)]
    grid = np.concatenate(rows)
    grey = read_picture(saved(Image.fromarray(255 - grid)), "it")
    assert np.array_equal(read_digits(grey, "it", rows=2, columns=3), grid)
    grid[28:, 56:] = 0
    grey = read_picture(saved(Image.fromarray(255 - grid)), "it")
    with pytest.raises(InputError, match="no ink in row 2, column 3 of its 2 x 3 cells"):
        read_digits(grey, "it", rows=2, columns=3)
    with pytest.raises(InputError, match="has 1 x 1 pixels, too few for 2 x 3 digits"):
        read_digits(np.zeros((1, 1)), "it", rows=2, columns=3)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_nothing_stands_out_on_an_empty_page(level: int) -> None:
    page = np.clip(np.random.default_rng(1).normal(level, 6, (97, 89)), 0, 255).astype(np.uint8)
    assert find_ink(page / 255).max() == 0
    with pytest.raises(InputError, match="picture 'it' has no ink in it"):
        read(Image.fromarray(page))


def test_what_is_no_picture_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, cut = tmp_path / "text.png", tmp_path / "cut.png"
    text.write_text("I am no picture")
    whole = saved(Image.effect_noise((97, 89), 50))
    cut.write_bytes(whole[: len(whole) // 2])
    for path, words in (
        (text, "is not a picture, despite its name"),
        (cut, r"cannot be read \(image file is truncated"),
        (tmp_path / "none.png", "does not exist"),
        (tmp_path, "is a folder, not a picture"),
    ):
        with pytest.raises(InputError, match=words):
            read_picture(path, path.name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no picture; known endings: "):
        pictures_in(tmp_path / "empty")
    monkeypatch.setattr(pictures_module, "MOST_PIXELS", 97 * 89 - 1)
    with pytest.raises(InputError, match="is 97 x 89 pixels, more than 8,632; make it smaller"):
        read_picture(whole, "it")


def test_a_huge_picture_is_refused_by_its_header() -> None:
    """The header of 20,000 x 20,000 pixels, and hardly any data: it is never decoded."""
    small = saved(Image.new("1", (8, 8)))
    place = small.index(b"IHDR") + 4
    for side, words in ((20_000, "is 20,000 x 20,000 pixels"), (9_001, "is 9,001 x 9,001 pixels")):
        header = small[:place] + side.to_bytes(4, "big") * 2 + small[place + 8 :]
        checked = header[: place + 13] + _crc(header[place - 4 : place + 13]) + header[place + 17 :]
        with pytest.raises(InputError, match=f"{words}, more than 50,000,000; make it smaller"):
            read_picture(checked, "it")
    assert Image.MAX_IMAGE_PIXELS is not None  # what others open keeps Pillow's limit


def test_a_huge_webp_is_refused_before_its_decoder_is_made() -> None:
    """The canvas in the header of an extended WebP file is what the decoder takes memory for."""
    content = bytearray(saved(Image.new("RGBA", (8, 8), (1, 2, 3, 4)), "WEBP", exact=True))
    assert content[12:16] == b"VP8X"
    for side, refused in ((7_000, False), (7_100, True)):
        content[24:30] = (side - 1).to_bytes(3, "little") * 2
        with pytest.raises(InputError) as caught:
            read_picture(bytes(content), "it")
        said = "picture 'it' has more than 50,000,000 pixels; make it smaller"
        assert (str(caught.value) == said) == refused


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_pixels_do_not_depend_on_how_many_are_converted_at_once(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image.effect_noise((11, 13), 90).convert(mode)
    if mode in ("LA", "RGBA"):
        image.putalpha(Image.effect_noise((11, 13), 90))
    content = saved(image, "TIFF")
    whole = read_pixels(content, "it")
    monkeypatch.setattr(pictures_module, "_BAND", 29)
    assert np.array_equal(read_pixels(content, "it"), whole)
    assert whole.shape == ((13, 11) if mode in ("1", "L", "LA") else (13, 11, 3))


def _crc(content: bytes) -> bytes:
    import zlib

    return zlib.crc32(content).to_bytes(4, "big")


def test_large_pictures_are_made_smaller_at_once() -> None:
    grey = read_picture(saved(Image.new("L", (5003, 41))), "it")
    assert max(grey.shape) < 2 * pictures_module.LONGEST


def test_pictures_and_images_by_name_are_answered_in_order(tmp_path: Path) -> None:
    reader = image_classifier(untrained_digits(tmp_path))
    images = reader.images("test")
    folder = tmp_path / "scans"
    folder.mkdir()
    for name, place in (("b.png", 3), ("a.PNG", 5)):
        (folder / name).write_bytes(saved(Image.fromarray(images.pixels[place].numpy())))
    (folder / "notes.txt").write_text("not me")
    given = expand(["test:7", str(folder), "valid:2", (folder / "b.png").read_bytes()])
    samples = read_inputs(reader, given)
    names = ["test:7", str(folder / "a.PNG"), str(folder / "b.png"), "valid:2", "image 3"]
    assert [sample.name for sample in samples] == names
    assert [sample.truth is None for sample in samples] == [False, True, True, False, True]
    assert samples[2].answer == samples[4].answer
    for sample in samples:
        assert sample.probabilities.sum().item() == pytest.approx(1)
        assert sample.answer == [int(sample.probabilities[0].argmax())]
    for text, words in (
        ("test:61", "test images go from 0 to 60"),
        ("x" * 5000, "no file "),
        ("", "no file "),
    ):
        with pytest.raises(InputError, match=words):
            read_inputs(reader, expand([text]))


def test_a_file_comes_before_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert expand(["7", "test:7"]) == ["7", "test:7"]
    (tmp_path / "7").touch()
    assert expand(["7", "test:7"]) == [Path("7"), "test:7"]


def test_grid_readers_read_pictures_of_grids(tmp_path: Path) -> None:
    task = Grids(rows=1, columns=3, test=5, directory=str(write_squares(tmp_path)))
    model = build_model(PatchSeq2SeqModel(rows=1, columns=3, width=8, heads=2), vocabulary=11).eval()
    reader = ImageClassifier("grids", task, (Member("one", model, task.scale),))
    (sample,) = read_inputs(reader, ["test:2"])
    pixels, truth = task.pixels("test")
    source = task.splits(0).test.inputs[0][2:3]
    fed = torch.tensor([[10, *sample.answer[:2]]])
    expected = model(source, fed)[0, :, :10].softmax(dim=-1)
    assert torch.allclose(sample.probabilities, expected, atol=1e-5)
    assert sample.truth == truth[2].tolist()
    assert torch.equal(sample.pixels, pixels[2])


def test_the_scale_is_that_of_the_run_and_not_of_the_images_at_hand(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    environment = json.loads(run.file("environment.json").read_text())
    data = {"source": "squares", "sample": False, "sha256": {}, "scale": [0.25, 0.5]}
    run.write({"environment.json": as_json({**environment, "data": data})})
    assert image_classifier(run).members[0].scale == (0.25, 0.5)
    assert Digits(directory=str(tmp_path / "squares")).scale == (0.0, 1.0)


def test_predict_pictures_as_users_do(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    pixels, _ = Digits(directory=str(tmp_path / "squares")).pixels("test")
    (tmp_path / "square.png").write_bytes(saved(Image.fromarray(pixels[0].numpy())))
    (tmp_path / "text.png").write_text("no picture")
    out = attnlab("predict", run.path, "square.png", "test:3", cwd=tmp_path).stdout
    assert out.splitlines()[0].startswith("square.png = ")
    told = json.loads(
        attnlab("predict", run.path, "-", "--json", cwd=tmp_path, stdin="square.png\ntest:3\n").stdout
    )
    assert [answer["input"] for answer in told] == ["square.png", "test:3"]
    assert told[0]["correct"] is None
    assert sum(told[0]["probabilities"][0]) == pytest.approx(1)
    plain = "P2\n28 28\n255\n" + " ".join(map(str, pixels[0].flatten().tolist()))
    (answer,) = json.loads(attnlab("predict", run.path, "-", "--json", cwd=tmp_path, stdin=plain).stdout)
    assert answer["probabilities"][0] == pytest.approx(told[0]["probabilities"][0], abs=1e-6)
    assert "text.png' is not a picture" in complaint("predict", run.path, "text.png", cwd=tmp_path)
    assert "there is nothing to read" in complaint("predict", run.path, "-", cwd=tmp_path)


def test_what_cannot_be_read_leaves_the_other_answers(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    pixels, _ = Digits(directory=str(tmp_path / "squares")).pixels("test")
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "a.png").write_bytes(saved(Image.fromarray(pixels[0].numpy())))
    (folder / "b.png").write_bytes(saved(Image.new("L", (29, 31), 255)))
    (folder / "c.png").write_bytes(saved(Image.fromarray(pixels[1].numpy())))
    given = ("scans", "none.png", "test:61")
    done = attnlab("predict", run.path, *given, cwd=tmp_path, code=2)
    assert [line.partition(" = ")[0] for line in done.stdout.splitlines()] == ["scans/a.png", "scans/c.png"]
    words = ("'scans/b.png' has no ink in it", "no file 'none.png'", "'test:61' does not exist")
    lines = done.stderr.splitlines()
    assert all(
        line.startswith("attnlab: ") and word in line for line, word in zip(lines, words, strict=True)
    )
    told = json.loads(attnlab("predict", run.path, *given, "--json", cwd=tmp_path, code=2).stdout)
    assert [each["input"].removeprefix("scans/") for each in told] == [
        *("a.png", "b.png", "c.png", "none.png", "test:61")
    ]
    assert ["error" in each for each in told] == [False, True, False, True, True]
    assert told[1]["error"] in lines[0]
    done = attnlab("predict", run.path, "none.png", "no.png", cwd=tmp_path, code=2)
    assert (done.stdout, done.stderr.count("no file ")) == ("", 2)
    assert "has no ink in it" in complaint("predict", run.path, "scans/b.png", cwd=tmp_path)


def test_words_stand_below_a_picture_that_leaves_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    said = torch.full((1, 10), 0.1)
    picture = card(
        Sample(Digits(), "it", torch.zeros(28, 28, dtype=torch.uint8), [3], said), 80, caption=False
    )
    monkeypatch.setenv("COLUMNS", "24")
    assert [str(line) for line in beside(picture, ["it = 3"])][4] == f"{picture[4]}  it = 3"
    assert [str(line) for line in beside(picture, ["its = 3"])] == [*map(str, picture), "its = 3"]
