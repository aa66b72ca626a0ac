"""Altered images: by how much, each in its own way, and the same again from the same generator."""

import pytest
import torch
from torch import Generator, Tensor

from attnlab.data.augmenting import augment
from attnlab.errors import SpecError
from attnlab.problems.digits import Digits
from attnlab.specs import Augment, Spec, VitModel, spec_hash, to_json, with_settings


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def blobs(count: int, row: float = 13.5, column: float = 13.5) -> Tensor:
    """A smooth spot in each image."""
    along = torch.arange(28)
    far = (along[:, None] - row) ** 2 + (along - column) ** 2
    return torch.exp(-far / 8).expand(count, 28, 28)


def centres(images: Tensor) -> Tensor:
    """Row and column of the middle of each image's mass."""
    along, mass = torch.arange(28.0), images.sum(dim=(1, 2))
    rows, columns = (images.sum(dim=2) @ along) / mass, (images.sum(dim=1) @ along) / mass
    return torch.stack((rows, columns), dim=1)


def test_nothing_to_do_changes_nothing() -> None:
    images = torch.rand(5, 28, 28)
    assert augment(images, Augment(), generator()) is images
    assert not Augment().any


def test_shifts_stay_within_their_limit_and_go_everywhere() -> None:
    moved = centres(augment(blobs(400), Augment(shift=3.0), generator())) - 13.5
    assert moved.abs().max() < 3.01
    for direction in (moved.amin(dim=0), moved.amax(dim=0)):
        assert (direction.abs() > 2.8).all()
    assert moved.mean(dim=0).abs().max() < 0.3


def test_turns_keep_the_distance_from_the_centre() -> None:
    turned = centres(augment(blobs(400, row=6.0), Augment(rotate=30.0), generator())) - 13.5
    assert torch.allclose(turned.norm(dim=1), torch.tensor(7.5), atol=0.05)
    angles = torch.rad2deg(torch.atan2(turned[:, 1], -turned[:, 0]))
    assert angles.abs().max() < 30.3
    assert angles.min() < -29
    assert angles.max() > 29


def test_scales_change_sizes_within_their_limit() -> None:
    mass = augment(blobs(400), Augment(scale=0.2), generator()).sum(dim=(1, 2)) / blobs(1).sum()
    assert 0.8**2 - 0.02 < mass.min() < 0.68
    assert 1.4 < mass.max() < 1.2**2 + 0.02


def test_bends_move_neighbours_alike_and_far_parts_apart() -> None:
    spec = Augment(elastic=2.0)
    near = [
        centres(augment(blobs(200, row, column), spec, generator())) - torch.tensor([row, column])
        for row, column in ((8.0, 8.0), (9.0, 8.0), (20.0, 20.0))
    ]
    assert 1.0 < near[0].abs().max() < 4.0
    together, apart = (
        torch.corrcoef(torch.stack((near[0][:, 0], other[:, 0])))[0, 1] for other in near[1:]
    )
    assert together > 0.9
    assert apart.abs() < 0.3


def test_each_image_its_own_way_and_the_same_again() -> None:
    images, spec = blobs(7), Augment(shift=2.0, rotate=10.0, scale=0.1, elastic=1.0)
    once, again, other = (augment(images, spec, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert len({image.sum().item() for image in once}) == 7


def test_beyond_the_edge_all_is_as_dark_as_the_darkest_pixel() -> None:
    scaled = augment(2 * blobs(50) - 1, Augment(shift=9.0), generator())
    plain = augment(blobs(50), Augment(shift=9.0), generator())
    assert torch.allclose(scaled, 2 * plain - 1, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "most"), [("shift", 28), ("rotate", 180), ("scale", 0.9), ("elastic", 28)]
)
def test_limits_of_limits(name: str, most: float) -> None:
    with pytest.raises(SpecError, match=rf"task.augment.{name} is -1.0, but it must be from 0 to {most}"):
        Augment(**{name: -1.0})


def test_specs_without_it_are_what_they_were() -> None:
    spec = Spec(task=Digits(), model=VitModel())
    assert "augment" not in to_json(spec)["task"]
    other = with_settings(spec, {"task.augment.shift": 2})
    assert isinstance(other.task, Digits)
    assert other.task.augment == Augment(shift=2.0)
    assert spec_hash(other) != spec_hash(spec)
