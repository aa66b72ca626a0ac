"""What is told of maps beside the figure: the digit being said, the entropy of rows, how many there are."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.maps import Watched, maps_of, share_of_cell, watch
from attnlab.analysis.samples import Sample
from attnlab.figures.maps import maps_data
from attnlab.report.images import map_signs
from commands import attnlab, complaint
from tiny_maps import GRID, seen, untrained_readers


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("numbers")
    untrained_readers(home, replace(GRID, decoder_layers=1))
    return home


def test_share_of_a_cell_is_the_sum_over_its_patches() -> None:
    weights = torch.arange(24.0).view(4, 6)
    assert share_of_cell(weights, 2, 3, 4) == pytest.approx((14 + 15 + 20 + 21) / 276)
    assert share_of_cell(weights, 4, 6, 23) == pytest.approx(23 / 276)
    for rows, columns in ((1, 1), (3, 3), (2, 4)):
        assert share_of_cell(weights, rows, columns, 0) is None


@pytest.mark.parametrize(("name", "grid"), [("grid", (4, 12)), ("cells", (1, 3))])
def test_maps_know_what_the_digit_that_is_said_gets(name: str, grid: tuple[int, int], home: Path) -> None:
    sample, watched = seen(home / name)
    assert watched.cells == (1, 3)
    middle = torch.zeros(grid)
    middle[:, grid[1] // 3 : 2 * grid[1] // 3] = 3 / math.prod(grid)
    pattern = torch.stack([middle, middle, torch.full(grid, 1 / math.prod(grid))]).flatten(1)
    watched = replace(
        watched, patterns={**watched.patterns, "decoder.0.cross": pattern.expand(1, 2, -1, -1)}
    )
    rows = maps_of(watched, "digits")
    assert [[each.on_digit for each in row] for row in rows] == [pytest.approx([0, 1, 1 / 3])] * 2
    assert map_signs(maps_data("digits", [(sample, rows)]).images).endswith(
        "Here the digit that is being said gets 44.44% of the weight of its maps, where an even map gives "
        "it 33.33%."
    )
    assert [each.on_digit is None for each in maps_of(watched, "rollout")[0]] == [False] * 3
    assert [each.on_digit for row in maps_of(watched, "received") for each in row] == [None] * 2


def told(home: Path, *words: str) -> tuple[dict[str, str], str]:
    """Cells of the last row of a table by the names of their columns, and what stands below it."""
    out = attnlab("maps", *words, "--heads", "mean", "--out", "told", cwd=home).stdout
    lines = out.splitlines()
    rule = next(place for place, line in enumerate(lines) if "──" in line)
    end = next(place for place in range(rule, len(lines)) if not lines[place].strip())
    names, cells = (
        [cell.strip() for cell in lines[at].split("   ") if cell.strip()] for at in (rule - 1, end - 1)
    )
    return dict(zip(names, cells, strict=True)), "\n".join(lines[end + 1 :])


def test_the_table_of_digits_tells_what_the_digit_that_is_said_gets(home: Path) -> None:
    cells, below = told(home, "grid", "test:2")
    kept = json.loads(attnlab("maps", "grid", "test:2", "--heads", "mean", "--json", cwd=home).stdout)
    share = kept["maps"][2]["on_digit"]
    assert 0 < share < 1
    assert cells["on digit"] == f"{100 * share:.0f}%"
    assert below.startswith(
        "on digit: what the digit that is being said gets of the map; an even map gives it 33%\n"
    )
    assert "entropy of rows" not in cells


def test_the_table_of_what_is_received_tells_the_entropy_of_rows(home: Path) -> None:
    cells, below = told(home, "vit", "--view", "received")
    _, watched = seen(home / "vit")
    (_, (last,)) = maps_of(watched, "received", heads="mean")
    assert last.entropy_of_rows is not None
    assert cells["entropy of rows"] == f"{100 * last.entropy_of_rows:.0f}%"
    assert "on digit" not in cells | {"below": below}
    assert "entropy of rows" not in told(home, "vit", "--view", "cls")[0]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            ("--samples", "100000"),
            "122 maps and a figure holds 96; choose a layer, a head or fewer images",
        ),
        (
            ("--samples", "17", "--heads", "each"),
            "102 maps and a figure holds 96; choose a layer, a head, fewer images or the mean of heads",
        ),
        (
            tuple(f"test:{place}" for place in range(50)),
            "100 maps and a figure holds 96; choose a layer, a head or fewer images",
        ),
    ],
)
def test_maps_are_counted_before_images_are_read(
    words: tuple[str, ...], asked: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[str] = []

    def watching(reader: ImageClassifier, sample: Sample) -> Watched:
        watched.append(sample.name)
        return watch(reader, sample)

    monkeypatch.setattr("attnlab.analysis.image_maps.watch", watching)
    assert complaint("maps", "vit", *words, cwd=home) == f"this asks for {asked}"
    assert watched == ["test:0"]


def test_it_is_said_when_maps_become_means(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.analysis.image_maps.MOST", 3)
    means = attnlab("maps", "vit", "--json", cwd=home)
    assert [each["map"] for each in json.loads(means.stdout)["maps"]] == [
        "encoder.0.self, mean",
        "encoder.1.self, mean",
    ]
    assert means.stderr == (
        "maps are means over the heads of a layer: one of each head would be 6 maps and a figure holds 3; "
        "a layer or a head chooses some\n"
    )
    for words in (("--heads", "mean"), ("--layer", "1")):
        assert attnlab("maps", "vit", *words, "--json", cwd=home).stderr == ""
