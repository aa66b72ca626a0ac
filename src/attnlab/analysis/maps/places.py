"""A patch by the place that a user gives: row and column, counted from 0, such as 3,2."""

import re

_PLACE = re.compile(r"(\d{1,4})\s*,\s*(\d{1,4})")


def patch_place(text: str, rows: int, columns: int) -> tuple[int, int] | None:
    """Row and column, or None where ``text`` names none of ``rows`` x ``columns`` patches."""
    match = _PLACE.fullmatch(text.strip())
    if match is None or int(match[1]) >= rows or int(match[2]) >= columns:
        return None
    return int(match[1]), int(match[2])
