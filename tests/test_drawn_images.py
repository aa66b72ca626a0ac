"""Image tasks made of a function: any size, grey or colour, to a class or to a sequence."""

from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from attnlab import registry, task
from attnlab.checks import check_task
from attnlab.defaults import default_spec
from attnlab.errors import SpecError
from attnlab.images import has_images
from attnlab.models import build_for
from attnlab.specs import Spec, from_json, to_json


@task(image=(6, 10), classes=["left", "right"])
def side(rng: Random, noise: float = 0.2) -> tuple[Any, str]:
    """Where the bright spot is."""
    picture = np.array([[rng.random() * noise for _ in range(10)] for _ in range(6)])
    column = rng.randrange(10)
    picture[rng.randrange(6), column] = 1.0
    return picture, "left" if column < 5 else "right"


@task(image=(5, 15, 3), symbols="rgb", answer="sequence")
def stripes(rng: Random) -> tuple[Any, str]:
    """The colours of three squares, from the left."""
    picture, said = np.zeros((5, 15, 3), dtype=np.uint8), ""
    for place in range(3):
        colour = rng.randrange(3)
        picture[:, 5 * place : 5 * place + 5, colour] = [[rng.randint(99, 255) for _ in range(5)]] * 5
        said += "rgb"[colour]
    return picture, said


OWN = {each.kind: registry._tasks.pop(each.kind) for each in (side, stripes)}  # other tests know them not


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks, **OWN})


def test_pictures_to_a_class() -> None:
    made = side(train=50, valid=7, test=11)
    check_task(made)
    splits = made.splits(0)
    assert splits.train.inputs[0].shape == (50, 6, 10)
    spots = splits.test.inputs[0].flatten(1).argmax(dim=1) % 10
    assert splits.test.targets.tolist() == (spots >= 5).long().tolist()
    assert made.answer(torch.tensor(1)) == "right"
    spec = default_spec(made)
    assert from_json(Spec, to_json(spec)) == spec
    assert build_for(spec)(*splits.test.inputs).shape == (11, 2)


def test_pictures_in_colour_to_a_sequence() -> None:
    made = stripes(train=50, valid=7, test=11)
    check_task(made)
    assert has_images(made)
    assert (made.cell_shape, made.places()) == ((3, 5, 5), ["0,0", "0,1", "0,2"])
    images, fed = made.splits(0).test.inputs
    colours = torch.stack(
        [images[:, :, :, at : at + 5].sum(dim=(2, 3)).argmax(dim=1) for at in (0, 5, 10)], 1
    )
    assert torch.equal(made.splits(0).test.targets, colours)
    assert fed[:, 0].tolist() == [3] * 11
    cells, labels = made.cell_pixels("test")
    assert torch.equal(cells.sum(dim=(2, 3)).argmax(dim=1), labels)
    spec = default_spec(made)
    assert build_for(spec)(images, fed).shape == (11, 3, 4)


BROKEN = {
    "shape": (
        lambda rng: (np.zeros((6, 9)), "a"),
        r"drew a picture of shape \(6, 9\); it must be \(6, 10\)",
    ),
    "pixels": (lambda rng: (np.full((6, 10), 300), "a"), "drew pixels outside of 0 to 255"),
    "class": (lambda rng: (np.zeros((6, 10)), "c"), "gave the class 'c'; known: a, b"),
    "pair": (lambda rng: 7, "returned 7; it must return a picture and its answer"),
    "raises": (lambda rng: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "few": (lambda rng: (np.zeros((6, 10)), "a"), "drew 1 different pictures; 6000 are asked for"),
    "chance": (lambda rng: (np.random.rand(6, 10), "a"), "uses randomness other than its rng"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_functions_that_break_a_rule(name: str) -> None:
    draw, complaint = BROKEN[name]
    made = task(image=(6, 10), classes=["a", "b"])(draw)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=complaint) as caught:
        check_task(made())
    assert str(caught.value).startswith(f"{__file__}: ")


def test_sizes_that_are_none() -> None:
    with pytest.raises(SpecError, match=r"@task image is \(6, 10, 4\); it must be a height and a width"):
        task(image=(6, 10, 4), classes=["a", "b"])
