"""The problem ``digits``: its task, its presets, and what only it has."""

from attnlab.problems.digits.task import Digits

__all__ = ["Digits"]
