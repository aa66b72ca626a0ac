"""What analyses refuse by looking at what is asked alone, before anything is loaded."""

from attnlab.errors import InputError

VIEWS = (1, 5, 9)
"""Views of an image: itself, with its four neighbours, with the four corners too."""


def check_views(views: int) -> None:
    """Refuse a number of views that would favour a side."""
    if views not in VIEWS:
        raise InputError(f"--views is {views}; it must be {', '.join(map(str, VIEWS[:-1]))} or {VIEWS[-1]}")
