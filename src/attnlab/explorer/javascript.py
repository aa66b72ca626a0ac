"""JavaScript in V8 without a browser, to hold what runs in a page against Python."""

import json
from typing import Any, final

from attnlab.errors import LabError

try:
    from py_mini_racer import JSEvalException, MiniRacer
except ImportError:  # it is in an extra
    MiniRacer = None


@final
class JavaScript:
    """A context of V8 in which ``source`` has run."""

    def __init__(self, source: str) -> None:
        require_javascript()
        self._context = MiniRacer()
        self.run(source)

    def run(self, source: str) -> None:
        """Run a script."""
        self._context.eval(f"{source}\n;0")

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function gives for plain JSON values, as a plain JSON value."""
        given = ", ".join(json.dumps(each) for each in arguments)
        try:
            return json.loads(str(self._context.eval(f"JSON.stringify(({function})({given}))")))
        except JSEvalException as error:
            raise LabError(str(error)) from error


def require_javascript() -> None:
    """Refuse where there is no V8."""
    if MiniRacer is None:
        raise LabError(
            "a hand-out is checked with mini-racer, which is not installed; install it with: "
            "pip install 'attnlab[explorer]'"
        )
