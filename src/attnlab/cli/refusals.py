"""What tyro says about words it cannot use, as one sentence in place of a box.

Its box has a title, then paragraphs between rules: what is wrong, perhaps "Perhaps you meant:"
with similar options, and where help is.
"""

import contextlib
import io
import re
from collections.abc import Iterator

from attnlab.errors import LabError

_FRAME = "│╰╯ "  # a terminal without these signs gets rules of hyphens and no frame
_RULE = re.compile(r"─{3,}|-{3,}")
_OPTION = re.compile(r"--[\w.-]+")
_VALUE = r"Error parsing ([^:]+): "
_WRONG = (
    (re.compile(_VALUE + r"invalid literal for int\(\) with base 10: ('.*?')"), "a whole number"),
    (re.compile(_VALUE + r"could not convert string to float: ('.*?')"), "a number"),
    (
        re.compile(_VALUE + r"no type matching .*?INT.*? could be instantiated from \[(.*?)\]"),
        "a whole number",
    ),
    (re.compile(_VALUE + r"no type matching .*?FLOAT.*? could be instantiated from \[(.*?)\]"), "a number"),
)
"""How tyro says that a value is no number, with its name and itself, and the rule in our words."""
_MISSING = re.compile(r"^Missing from attnlab [\w ]+: (?:[A-Z]+ )?")


@contextlib.contextmanager
def one_sentence(command: str) -> Iterator[None]:
    """Turn a refusal by tyro within the block into a ``LabError``."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            yield
    except SystemExit as left:
        if left.code in (0, None):
            raise
        raise LabError(f"{sentence(said.getvalue())} (attnlab {command} --help tells more)") from None


def sentence(box: str) -> str:
    """The first paragraph of a box, and the option that was perhaps meant; of a value its rule."""
    _, *inside = box.splitlines()  # the first line is the title
    text = _RULE.split(" ".join(line.strip(_FRAME) for line in inside))
    first, *others = (" ".join(each.split()) for each in text if each.strip())
    wrong = next((told for pattern, rule in _WRONG if (told := _told(pattern.match(first), rule))), "")
    if wrong:
        return wrong
    meant = next((_OPTION.search(each) for each in others if each.startswith("Perhaps you meant")), None)
    told = _MISSING.sub("missing: ", first.removesuffix("(required)").rstrip(". "))
    told = told[:1].lower() + told[1:]
    return f"{told}; did you mean {meant.group()}?" if meant else told


def _told(found: re.Match[str] | None, rule: str) -> str:
    """Name, value and rule; nothing if ``found`` is nothing."""
    return f"{found[1]} is {found[2]}; it must be {rule}" if found else ""
