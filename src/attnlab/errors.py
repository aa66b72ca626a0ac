"""User errors: what can go wrong in a way that a user can fix.

Every message is one sentence that names the thing, its value and the rule. The command line
prints it and exits with code 2; anything else that reaches a user is a bug. What a user gave is cut in a
message where it is long.
"""

import reprlib
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

MOST = 8
"""Names that a sentence about an unknown one lists."""


ECHOED = 200
"""Characters of what a user gave that a sentence repeats."""
LONGEST = 1000
"""Characters of a sentence."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = ECHOED
_short.maxlevel = 3


def brief(value: object) -> str:
    """A value as in Python, cut in its middle where it is long: a message stays a sentence."""
    try:
        return shortened(repr(value) if isinstance(value, str) else _short.repr(value), ECHOED)
    except ValueError:  # Python refuses to write whole numbers of more than 4,300 digits
        return "a number of thousands of digits"


def shortened(text: str, most: int) -> str:
    """``text``, cut in its middle if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    kept = most - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


_CONTROL = dict.fromkeys((*range(32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)), "�")
_LINES = {code: sign for code, sign in _CONTROL.items() if chr(code) not in "\t\n"}


def printable(text: str, *, lines: bool = True) -> str:
    """``text`` with a mark in the place of each character that would steer a terminal or turn the direction
    of what follows; with ``lines`` tabs and ends of lines stay.
    """
    return text if text.isprintable() else text.translate(_LINES if lines else _CONTROL)


class LabError(Exception):
    """A user error: something that a user can fix."""

    def __str__(self) -> str:
        """The sentence; one that is too long begins with what was given and ends with the rule."""
        text = super().__str__()
        return text if len(text) <= LONGEST else f"{text[:ECHOED]}...{text[ECHOED + 3 - LONGEST :]}"


class SpecError(LabError):
    """A spec, or a flag that fills it, has an unknown key or a value outside its rule."""


class InputError(LabError):
    """An example that a task cannot read, or an argument outside its rule.

    >>> try:
    ...     load("zoo:adder").predict("374*814")
    ... except InputError as error:
    ...     print(error)
    '374*814' is not a sum of two numbers; write it as 374+814
    """


class RunError(LabError):
    """A run folder is missing, damaged, or does not fit its spec."""


class AnalysisError(RunError, AttributeError):
    """A run is asked for what its task does not offer."""


class StorageError(LabError):
    """The disk refused a write; what was there before is still there."""


def nearest(word: str, known: Iterable[str], *, first: Sequence[str] = (), command: str = "") -> str:
    """End of a sentence about an unknown ``word``: the known one that is near, or some of all.

    Where there are more than a sentence can hold, those that come ``first`` are listed, then those most
    like ``word``; ``command`` is the one that lists all.
    """
    options, word = sorted(known), word[:ECHOED]
    close = get_close_matches(word, options, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if len(options) <= MOST:
        return f"; known: {', '.join(options) or 'none'}"
    unlike = {each: -SequenceMatcher(None, each, word).ratio() for each in options}
    others = sorted(set(options) - set(first), key=lambda each: (unlike[each], each))
    shown = [*first, *others][:MOST]
    where = f", all in '{command}'" if command else ""
    return f"; known: {', '.join(shown)}, and {len(options) - len(shown)} more{where}"
