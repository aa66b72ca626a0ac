"""Altering images: moved, turned, resized and bent, each by an amount of its own.

Every pixel p of the new image, as a point from -1 to 1 with the centre at 0, shows the old image at

    A p + b + e(p),   A = 1/s (cos a, -sin a; sin a, cos a)

with the angle a, the scale s and the shift b drawn uniformly within their limits, one of each an image. e
is a smooth field: random vectors at KNOTS x KNOTS points, between which it is interpolated bicubically (a
light form of the elastic distortions of Simard, Steinkraus and Platt, 2003). Between pixels the old image
is interpolated linearly; beyond its edge a grey one is as the darkest pixel of all, and one in colour as
its nearest pixel. Angles are those of square pixels, also where an image is wider than high.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from attnlab.specs import Augment

KNOTS = 5


def augment(
    images: Float[Tensor, "N *C Y X"], spec: Augment, generator: Generator
) -> Float[Tensor, "N *C Y X"]:
    """``images``, each altered in its own way."""
    if not spec.any or len(images) == 0:
        return images
    count, *channels, height, width = images.shape
    size = [count, 1, height, width]
    grid = F.affine_grid(_affine(count, height, width, spec, generator), size, align_corners=False)
    if spec.elastic:
        grid = grid + _bends(count, height, width, spec.elastic, generator)
    if channels:
        return F.grid_sample(images, grid, align_corners=False, padding_mode="border")
    dark = images.min()
    moved = F.grid_sample((images - dark)[:, None], grid, align_corners=False)
    return moved[:, 0] + dark


def _affine(
    count: int, height: int, width: int, spec: Augment, generator: Generator
) -> Float[Tensor, "N 2 3"]:
    def drawn(limit: float) -> Float[Tensor, "N"]:
        return (2 * torch.rand(count, generator=generator) - 1) * limit

    angle, scale = drawn(math.radians(spec.rotate)), 1 + drawn(spec.scale)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    right, down = drawn(spec.shift * (2 / width)), drawn(spec.shift * (2 / height))
    across, along = -sin * (height / width), sin * (width / height)
    return torch.stack((cos, across, right, along, cos, down), dim=1).view(count, 2, 3)


def _bends(
    count: int, height: int, width: int, limit: float, generator: Generator
) -> Float[Tensor, "N Y X 2"]:
    """Shifts to the right and down, in shares of half a side."""
    limits = torch.tensor([limit * (2 / width), limit * (2 / height)]).view(2, 1, 1)
    knots = (2 * torch.rand(count, 2, KNOTS, KNOTS, generator=generator) - 1) * limits
    return (_between(height) @ knots @ _between(width).T).permute(0, 2, 3, 1).contiguous()


@cache
def _between(side: int) -> Float[Tensor, "side K"]:
    """The map from knots along one side to pixels along it; a field is mapped along both sides."""
    knots = torch.eye(KNOTS)[None, :, :, None].expand(-1, -1, -1, KNOTS)
    along = F.interpolate(knots, (side, KNOTS), mode="bicubic", align_corners=True)
    return along[0, :, :, 0].T.contiguous()
