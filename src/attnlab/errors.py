"""What can go wrong in a way that a user can mend.

Every message is one sentence that names the thing, its value and the rule. The command line
prints it and exits with code 2; anything else that reaches a user is a bug.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class LabError(Exception):
    """Something a user can mend."""


class SpecError(LabError):
    """A spec, or a flag that fills it, has an unknown key or a value outside its rule."""


class InputError(LabError):
    """An example that a task cannot read."""


class RunError(LabError):
    """A run folder is missing, damaged, or does not fit its spec."""


class StorageError(LabError):
    """The disk refused a write; what was there before is still there."""


def nearest(word: str, known: Iterable[str]) -> str:
    """End of a sentence about an unknown ``word``: the nearest known one, or all of them."""
    options = sorted(known)
    close = get_close_matches(word, options, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(options) or 'none'}"
