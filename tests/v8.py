"""Modules of JavaScript that import nothing, in V8 without a browser."""

import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest

import attnlab

JS = Path(attnlab.__file__).parent / "explorer" / "js"

_EXPORT = re.compile(r"^export (?=(?:function|const|class) (\w+))", re.MULTILINE)


class V8:
    """A context with modules by their names."""

    def __init__(self, **modules: str) -> None:
        racer = pytest.importorskip("py_mini_racer")
        self.context = racer.MiniRacer()
        weakref.finalize(self, self.context.close)  # V8 left open at the end of a process may hang it
        for name, source in modules.items():
            exported = ", ".join(_EXPORT.findall(source))
            body = _EXPORT.sub("", source)
            self.context.eval(f"var {name} = (() => {{ {body}\nreturn {{ {exported} }}; }})(); 0")

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of plain JSON gives, or ``{"error": message}``."""
        given = ", ".join(json.dumps(each) for each in arguments)
        script = f"""JSON.stringify((() => {{
            try {{ return {{ value: {function}({given}) }}; }}
            catch (error) {{ return {{ error: error.message }}; }}
        }})())"""
        return json.loads(str(self.context.eval(script)))


def source(name: str) -> str:
    return (JS / name).read_text(encoding="utf-8")
