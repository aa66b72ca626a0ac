"""The keys that a sweep sets: whether there are such keys, and what they are set to."""

from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import SpecError, nearest
from attnlab.spec import Spec, to_json, with_settings
from attnlab.studies.sweeps.parts import SweepFile

UNIT_END = 1 - 1e-9  # quantile functions are defined below 1


def check_keys(file: SweepFile, base: Spec) -> None:
    """Refuse a key that no spec of the search has, before anything is trained.

    A variant has keys of its own, so a key below one that the file sets as well is looked up in each of
    the values that this one may have.
    """
    every = (*file.settings, *file.parameters)
    for key in every:
        above = [other for other in every if key.startswith(f"{other}.")]
        choices = [{other: option} for other in above for option in options(file, other)]
        try:
            specs = [with_settings(base, choice) for choice in choices] or [base]
        except SpecError:  # possible only together with something else: the trials will tell
            continue
        known = {name for spec in specs for name in _keys(to_json(spec))}
        if key not in known:
            raise SpecError(f"{key} is no key of this spec{nearest(key, known)}")


def options(file: SweepFile, key: str) -> tuple[Any, ...]:
    """The values that the file gives a key: all, or the ends of a range; none if it does not name it."""
    if key in file.settings:
        return (file.settings[key],)
    if key not in file.parameters:
        return ()
    distribution = file.parameters[key]
    return distribution.values() or (distribution.quantile(0.0), distribution.quantile(UNIT_END))


def _keys(data: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys that can be set. A kind is not: it comes with its variant."""
    for name, value in data.items():
        if name != "kind":
            yield prefix + name
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{name}.")
