"""Shapes that signatures state are checked in every call while tests run; import this before attnlab.

Other modules are left as they are: mypy knows their types, and checking each of their calls takes long.
"""

from pathlib import Path

from jaxtyping import install_import_hook

SOURCE = Path(__file__).parents[1] / "src"


def modules_with_shapes() -> list[str]:
    paths = [path for path in SOURCE.rglob("*.py") if "jaxtyping" in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


install_import_hook(modules_with_shapes(), "beartype.beartype")
