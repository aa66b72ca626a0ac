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
    """The first paragraph of a box, and the option that was perhaps meant."""
    _, *inside = box.splitlines()  # the first line is the title
    text = _RULE.split(" ".join(line.strip(_FRAME) for line in inside))
    first, *others = (" ".join(each.split()) for each in text if each.strip())
    meant = next((_OPTION.search(each) for each in others if each.startswith("Perhaps you meant")), None)
    told = _MISSING.sub("missing: ", first.removesuffix("(required)").rstrip(". "))
    told = told[:1].lower() + told[1:]
    return f"{told}; did you mean {meant.group()}?" if meant else told
