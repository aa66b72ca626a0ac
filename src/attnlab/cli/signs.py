"""What stands for a sign that a terminal's encoding lacks: a letter where signs must differ, else ?."""

import codecs

PLAIN = "attnlab-plain"
"""The name under which streams know it, as they know strict or replace."""
_LETTERS = {"✓": "r", "✗": "w"}  # right, wrong


def plain(error: UnicodeError) -> tuple[str, int]:
    """Other signs in the place of those that cannot be written, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_LETTERS.get(sign, "?") for sign in lost), error.end


codecs.register_error(PLAIN, plain)
