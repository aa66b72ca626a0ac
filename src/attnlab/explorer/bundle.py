"""The explorer's ES modules joined into one script, for a file without a server and for notebooks.

Each module becomes a function that returns its exports; modules come in the order in which they are needed:

    const attnlab = (() => {
      "use strict";
      const $modules = [];
      $modules.push((() => { ...; return { softmax, layerNorm }; })());
      $modules.push((() => { const { softmax } = $modules[0]; ...; return { mount }; })());
      return $modules.at(-1);
    })();

Modules may use what these rules allow: imports of names or of a whole module, and named exports, at the
beginning of a line, from relative paths; no default exports, no exported ``let``, no ``import()``, no
``import.meta``, no cycles. What stands between ``/**`` and ``*/`` on lines of its own is left out.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_IMPORT = re.compile(r"^import\s*\{([^}]*)\}\s*from\s*(['\"])([^'\"]+)\2;?[ \t]*$", re.MULTILINE)
_IMPORT_ALL = re.compile(r"^import\s*\*\s*as\s+([\w$]+)\s+from\s*(['\"])([^'\"]+)\2;?[ \t]*$", re.MULTILINE)
_EXPORT_LIST = re.compile(r"^export\s*\{([^}]*)\};?[ \t]*$", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+([\w$]+)", re.MULTILINE)
_DOC = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*\n", re.MULTILINE | re.DOTALL)
_LEFT = re.compile(r"^(?:import|export)\b.*$|\bimport\s*\(\s*['\"].*$|\bimport\.meta\b.*$", re.MULTILINE)


_END = "return $modules.at(-1);\n})();\n"


@dataclass(frozen=True)
class _Module:
    path: Path
    text: str
    """Without imports and the word ``export``."""
    imports: list[tuple[str, Path]]
    """One name for a whole module, or a pattern that takes it apart; and the module."""
    exports: list[str]


def bundle(entry: Path, name: str = "attnlab") -> str:
    """One script that declares the constant ``name``: what ``entry`` exports."""
    modules = _in_order(entry.resolve())
    names = {each.path: f"$modules[{number}]" for number, each in enumerate(modules)}
    body = "".join(_wrapped(each, names) for each in modules)
    return f'const {name} = (() => {{\n"use strict";\nconst $modules = [];\n{body}{_END}'


def module_files(entry: Path) -> list[Path]:
    """The files that ``bundle`` joins, those that others need first."""
    return [each.path for each in _in_order(entry.resolve())]


def _wrapped(module: _Module, names: dict[Path, str]) -> str:
    taken = "".join(f"const {what} = {names[source]};\n" for what, source in module.imports)
    given = ", ".join(module.exports)
    return f"$modules.push((() => {{\n{taken}{module.text.strip()}\nreturn {{ {given} }};\n}})());\n"


def _in_order(entry: Path) -> list[_Module]:
    """The module and all that it needs, each behind what it needs itself."""
    done: dict[Path, _Module] = {}
    waiting: list[Path] = []

    def visit(path: Path) -> None:
        if path in waiting:
            circle = " -> ".join(each.name for each in [*waiting[waiting.index(path) :], path])
            raise ValueError(f"modules import each other in a circle: {circle}")
        if path in done:
            return
        waiting.append(path)
        module = _read(path)
        for _, source in module.imports:
            visit(source)
        waiting.pop()
        done[path] = module

    visit(entry)
    return list(done.values())


def _read(path: Path) -> _Module:
    text = _DOC.sub("", path.read_text(encoding="utf-8"))
    imports = [(_pattern(names), _source(path, source)) for names, _, source in _IMPORT.findall(text)]
    imports += [(name, _source(path, source)) for name, _, source in _IMPORT_ALL.findall(text)]
    exports = [name for _, name in _EXPORT.findall(text)]
    exports += [_exported(each) for names in _EXPORT_LIST.findall(text) for each in _names(names)]
    bare = _EXPORT.sub(r"\1 \2", _EXPORT_LIST.sub("", _IMPORT_ALL.sub("", _IMPORT.sub("", text))))
    left = _LEFT.search(_without_comments(bare))
    if left:
        raise ValueError(
            f"{path.name} has {left[0].strip()!r}; only imports and exports by name can be bundled"
        )
    return _Module(path, bare, imports, exports)


def _source(path: Path, source: str) -> Path:
    if not source.startswith("."):
        raise ValueError(f"{path.name} imports {source!r}; only relative paths can be bundled")
    return (path.parent / source).resolve()


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _pattern(names: str) -> str:
    """``a as b, c`` as ``{ a: b, c }``."""
    taken = ", ".join(re.sub(r"\s+as\s+", ": ", each) for each in _names(names))
    return f"{{ {taken} }}"


def _exported(name: str) -> str:
    """``a as b`` as ``b: a``."""
    inside, _, outside = name.partition(" as ")
    return f"{outside.strip()}: {inside.strip()}" if outside else name


def _without_comments(text: str) -> str:
    """Comments may mention modules, as types do."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
