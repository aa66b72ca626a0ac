"""What can go wrong in a way that a user can mend.

Every message is one sentence that names the thing, its value and the rule. The command line
prints it and exits with code 2; anything else that reaches a user is a bug.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

MOST = 8
"""Names that a sentence about an unknown one lists."""


class LabError(Exception):
    """Something a user can mend."""


class SpecError(LabError):
    """A spec, or a flag that fills it, has an unknown key or a value outside its rule."""


class InputError(LabError):
    """An example that a task cannot read, or an argument outside its rule.

    >>> try:
    ...     load("zoo:adder").predict("374*814")
    ... except InputError as error:
    ...     print(error)
    '374*814' is no sum of two numbers; write it as 374+814
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
    options = sorted(known)
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
