"""The problem ``sorting``: its task, its presets, and what only it has."""

from attnlab.problems.sorting.task import Sorting

__all__ = ["Sorting"]
