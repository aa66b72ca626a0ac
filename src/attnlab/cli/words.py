"""Words of a command line that are taken before tyro sees the others."""

from attnlab.errors import SpecError


def take_option(arguments: list[str], option: str) -> tuple[str | None, list[str]]:
    """The value of ``--option VALUE`` or ``--option=VALUE``, and the words without it."""
    for place, word in enumerate(arguments):
        if word == option:
            if place + 1 == len(arguments):
                raise SpecError(f"{option} needs a value behind it")
            return arguments[place + 1], arguments[:place] + arguments[place + 2 :]
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}="), arguments[:place] + arguments[place + 1 :]
    return None, arguments
