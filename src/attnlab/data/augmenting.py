"""Altering images of digits: moved, turned, resized and bent, each by an amount of its own.

Every pixel p of the new image, as a point from -1 to 1 with the centre at 0, shows the old image at

    A p + b + e(p),   A = 1/s (cos a, -sin a; sin a, cos a)

with the angle a, the scale s and the shift b drawn uniformly within their limits, one of each an image. e
is a smooth field: random vectors at KNOTS x KNOTS points, between which it is interpolated bicubically (a
light form of the elastic distortions of Simard, Steinkraus and Platt, 2003). Between pixels the old image
is interpolated linearly, and beyond its edge it is as its darkest pixel.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from attnlab.spec import SIDE, Augment

KNOTS = 5
_PIXEL = 2 / SIDE  # of an image from -1 to 1


def augment(
    images: Float[Tensor, "N 28 28"], spec: Augment, generator: Generator
) -> Float[Tensor, "N 28 28"]:
    """``images``, each altered in its own way."""
    if not spec.any or len(images) == 0:
        return images
    dark = images.min()
    size = [len(images), 1, SIDE, SIDE]
    grid = F.affine_grid(_affine(len(images), spec, generator), size, align_corners=False)
    if spec.elastic:
        grid = grid + _bends(len(images), spec.elastic * _PIXEL, generator)
    moved = F.grid_sample((images - dark)[:, None], grid, align_corners=False)
    return moved[:, 0] + dark


def _affine(count: int, spec: Augment, generator: Generator) -> Float[Tensor, "N 2 3"]:
    def drawn(limit: float) -> Float[Tensor, "N"]:
        return (2 * torch.rand(count, generator=generator) - 1) * limit

    angle, scale = drawn(math.radians(spec.rotate)), 1 + drawn(spec.scale)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    right, down = drawn(spec.shift * _PIXEL), drawn(spec.shift * _PIXEL)
    return torch.stack((cos, -sin, right, sin, cos, down), dim=1).view(count, 2, 3)


def _bends(count: int, limit: float, generator: Generator) -> Float[Tensor, "N 28 28 2"]:
    knots = (2 * torch.rand(count, 2, KNOTS, KNOTS, generator=generator) - 1) * limit
    between = _between()
    return (between @ knots @ between.T).permute(0, 2, 3, 1).contiguous()


@cache
def _between() -> Float[Tensor, "28 K"]:
    """The map from knots along one side to pixels along it; a field is mapped along both sides."""
    knots = torch.eye(KNOTS)[None, :, :, None].expand(-1, -1, -1, KNOTS)
    along = F.interpolate(knots, (SIDE, KNOTS), mode="bicubic", align_corners=True)
    return along[0, :, :, 0].T.contiguous()
