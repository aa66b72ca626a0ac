"""The problem ``addition``: its task, its presets, and what only it has."""

from attnlab.problems.addition.task import Addition

__all__ = ["Addition"]
