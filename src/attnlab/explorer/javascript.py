"""JavaScript in V8 without a browser, to hold what runs in a page against Python."""

import json
import weakref
from importlib.util import find_spec
from typing import Any, final

from attnlab.errors import LabError

INSTALLED = find_spec("py_mini_racer") is not None
"""Whether V8 is there; it is in an extra."""


@final
class JavaScript:
    """A context of V8 in which ``source`` has run."""

    def __init__(self, source: str) -> None:
        require_javascript()
        from py_mini_racer import JSEvalException, MiniRacer

        self._context, self._refusal = MiniRacer(), JSEvalException
        weakref.finalize(self, self._context.close)  # left open, it may hang a process at its end
        self.run(source)

    def run(self, source: str) -> None:
        """Run a script."""
        self._context.eval(f"{source}\n;0")

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function gives for plain JSON values, as a plain JSON value."""
        given = ", ".join(json.dumps(each) for each in arguments)
        try:
            return json.loads(str(self._context.eval(f"JSON.stringify(({function})({given}))")))
        except self._refusal as error:
            raise LabError(str(error)) from error


def require_javascript() -> None:
    """Refuse where there is no V8."""
    if not INSTALLED:
        raise LabError(
            "a hand-out is checked with mini-racer, which is not installed; install it with: "
            "pip install 'attnlab[explorer]'"
        )
