"""Why a fault does what it does, with an example to run; read from the files in ``explained``."""

import ast
from dataclasses import dataclass
from importlib.resources import files
from typing import final

_PAPER = "Paper: "


@final
@dataclass(frozen=True)
class Explanation:
    """``code`` is a program of a few lines that shows the fault; ``paper`` is empty where none fits."""

    text: str
    paper: str
    code: str


def explanation_of(kind: str) -> Explanation | None:
    """The explanation of a kind of fault; None for one that has none, such as a fault of your own."""
    file = files("attnlab.doctor") / "explained" / f"{kind.replace('-', '_')}.py"
    if not file.is_file():
        return None
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    text, _, paper = (ast.get_docstring(tree) or "").partition(_PAPER)
    first = tree.body[0].end_lineno or 0  # the docstring is the first statement
    code = "".join(source.splitlines(keepends=True)[first:])
    return Explanation(" ".join(text.split()), " ".join(paper.split()), code.strip())
