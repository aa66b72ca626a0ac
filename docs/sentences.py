"""Every sentence a user can meet, as a list: errors, warnings, help, texts and docstrings of public names.

``python docs/sentences.py [KIND] [WORDS]`` prints those of a kind that contain some words, with file and
line. They are read from the syntax of the source, so nothing is run; what a sentence is filled with stands
in braces.
``tests/test_sentences.py`` holds them to the terms of technical English that ``IDIOMS`` lists.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/attnlab"

FRONT_ENDS = ("*.js", "*.html")

IDIOMS = {
    r"(?<!there )\bis (?:no|nothing)\b(?! (?:longer|more|less|better))": "unknown ..., not a ..., no ...",
    r"\bthere are none\b": "name what is missing",
    r"\btells?\b": "shows, says, classifies",
    r"\btold apart\b": "reported separately, distinguished",
    r"\bmends?\b": "fix",
    r"\bpoints of percent\b": "percentage points",
    r"\brightly\b": "correctly",
    r"\bslips?\b": "mistake",
    r"\bto choose by\b": "for model selection",
    r"\bowed to\b": "attributed to",
    r"\bbeside (?:it|them|each)\b": "next to",
    r"\bwhoever\b": "name who",
    r"\bwherever\b": "where",
    r"\bseldom\b": "rarely",
    r"\banew\b": "again",
    r"\bsurely missed\b": "needed (its interval lies above 0)",
    r"\bfor ever\b": "permanently",
    r"\bbeware\b": "warning",
    r"\bis owed\b": "is attributed",
}
"""What colleagues would not say, and what to write instead."""


@dataclass(frozen=True)
class Sentence:
    """A text of the source, where it stands, and what it is for."""

    file: str
    line: int
    kind: str
    text: str


def sentences() -> list[Sentence]:
    """All of them, in the order of the files."""
    found: list[Sentence] = []
    for path in sorted(SOURCE.rglob("*.py")):
        found += of_python(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    for pattern in FRONT_ENDS:
        for path in sorted(SOURCE.rglob(pattern)):
            found += of_script(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    return found


def of_python(source: str, file: str) -> list[Sentence]:
    """The texts of a module: of each string of two words or more what it is for."""
    tree = ast.parse(source)
    docs, found = _docstrings(tree), []
    for node, kind in _walk(tree, "text"):
        if id(node) in docs:
            kind = docs[id(node)]
        text = " ".join(_text(node).split()) if kind != "docstring" else _text(node)
        if " " in text.strip() and re.search(r"[A-Za-z]{2}", text):
            found.append(Sentence(file, node.lineno, kind, text))
    return found


def _walk(node: ast.AST, kind: str) -> Iterator[tuple[ast.expr, str]]:
    """Strings below a node, each once, with the kind of the call that takes it."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node, kind
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from _walk(part.value, kind)
        return
    if isinstance(node, ast.Call):
        kind = _kind(node.func) or kind
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, kind)


def _kind(called: ast.expr) -> str | None:
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    if name.endswith("Error") or name in ("require", "refuse", "fail"):
        return "error"
    if name in ("warn", "complain", "note"):
        return "warning"
    return "help" if name == "arg" else None


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    assert isinstance(node, ast.JoinedStr)
    return "".join(map(_text, node.values))


def _docstrings(tree: ast.Module) -> dict[int, str]:
    """Docstrings by the identity of their nodes: ``docstring`` of public names, ``inside`` of others."""
    found: dict[int, str] = {}

    def enter(node: ast.AST, hidden: bool) -> None:
        previous: ast.AST | None = None
        for child in getattr(node, "body", []):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                below = not isinstance(previous, ast.Assign | ast.AnnAssign)
                private = hidden if below else hidden or _private(previous)
                found[id(child.value)] = "inside" if private else "docstring"
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                enter(child, hidden or inside_function or child.name.startswith("_"))
            previous = child

    enter(tree, False)
    return found


def _private(node: ast.AST | None) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return isinstance(target, ast.Name) and target.id.startswith("_")


_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$|<!--.*?-->|<style.*?</style>", re.S | re.M)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|(?<=>)[^<>{}]+(?=<)')


def of_script(source: str, file: str) -> list[Sentence]:
    """The texts of a page or a module of the explorer, without its comments."""
    bare = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), source)
    found = []
    for match in _STRING.finditer(bare):
        text = " ".join(match[0].strip('"`').split())
        if re.search(r"[A-Za-z]{2,} [A-Za-z]", text):
            found.append(Sentence(file, bare.count("\n", 0, match.start()) + 1, "page", text))
    return found


def idioms_of(text: str) -> dict[str, str]:
    """The idioms in a text, and what to write instead."""
    found, plain = {}, re.sub(r"``.*?``", "", text)  # names of the program are no words
    for pattern, instead in IDIOMS.items():
        if match := re.search(pattern, plain, re.I):
            found[match[0]] = instead
    return found


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", help="error, warning, help, docstring, inside, text or page")
    parser.add_argument("words", nargs="?", default="", help="a regular expression")
    parser.add_argument("--idioms", action="store_true", help="only those with an idiom")
    chosen = parser.parse_args()
    for each in sentences():
        if chosen.kind in (None, "all", each.kind) and re.search(chosen.words, each.text, re.I):
            if chosen.idioms and not (why := idioms_of(each.text)):
                continue
            print(
                f"{each.file}:{each.line} [{each.kind}] {each.text!r}"
                + (f"  <- {why}" if chosen.idioms else "")
            )


if __name__ == "__main__":
    main()
