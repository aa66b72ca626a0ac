"""Positional encodings. Every scheme fills one or more of three slots; attention never asks which.

``Positions(add, turn, bias)``: *add* gives vectors that are added to the input, *turn* turns
queries and keys, *bias* is added to the scores. A fourth part, *mapping*, says where tokens stand.
``positions.at(T, x)`` gives the ``Placed`` that all layers of one pass share.
"""

from attnlab.positions.alibi import LinearBias
from attnlab.positions.build import build_grid_positions, build_patch_positions, build_positions
from attnlab.positions.grid import GridTable, GridTurn, GridWaves
from attnlab.positions.learned import LearnedTable
from attnlab.positions.mappings import RandomPlaces, SqueezedPlaces
from attnlab.positions.placed import Placed, Positions
from attnlab.positions.relative import BucketBias
from attnlab.positions.rotary import RotaryTurn
from attnlab.positions.sinusoidal import SinusoidalWaves
from attnlab.positions.slots import Add, Bias, Mapping, Turn
from attnlab.positions.starts import start_positions

__all__ = [
    "Add",
    "Bias",
    "BucketBias",
    "GridTable",
    "GridTurn",
    "GridWaves",
    "LearnedTable",
    "LinearBias",
    "Mapping",
    "Placed",
    "Positions",
    "RandomPlaces",
    "RotaryTurn",
    "SinusoidalWaves",
    "SqueezedPlaces",
    "Turn",
    "build_grid_positions",
    "build_patch_positions",
    "build_positions",
    "start_positions",
]
