"""Positional encodings. Every scheme fills one or more of three slots; attention never asks which.

``Positions(add, rotation, bias)``: *add* gives vectors that are added to the input, *rotation* rotates
queries and keys, *bias* is added to the scores. A fourth part, *mapping*, says where tokens stand.
``positions.at(T, x)`` gives the ``Placed`` that all layers of one pass share.
"""

from attnlab.positions.build import ONE_BY_ONE, build_positions, start_positions
from attnlab.positions.schemes import LearnedTable
from attnlab.positions.slots import Placed, Positions

__all__ = ["ONE_BY_ONE", "LearnedTable", "Placed", "Positions", "build_positions", "start_positions"]
