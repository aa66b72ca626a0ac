"""The problem ``grids``: its task, its presets, and what only it has."""

from attnlab.problems.grids.task import Grids

__all__ = ["Grids"]
