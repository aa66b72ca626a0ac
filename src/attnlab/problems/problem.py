"""What the built-in tasks share."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.specs import Spec
    from attnlab.specs.task import TourStep
    from attnlab.studies import Study


class Problem:
    """A task in a package of its own; its presets, studies and tour stand beside it."""

    @classmethod
    def presets(cls) -> "dict[str, Spec]":
        return cls._beside("presets").PRESETS

    @classmethod
    def studies(cls) -> "tuple[Study, ...]":
        return cls._beside("studies").STUDIES

    def tour(self) -> "tuple[TourStep, ...]":
        return self._beside("tour").TOUR

    @classmethod
    def _beside(cls, name: str) -> Any:
        return import_module(f"{cls.__module__.rpartition('.')[0]}.{name}")
