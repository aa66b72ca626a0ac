"""Short names of places in a model, the same for every model that has them.

    patches    tokens before any block: the patches of an image, or what stands for tokens of text
    block:n    tokens after block n of the encoder, from 0 on
    read       what the readout sees, or nearly so

Any tap and any module goes by its path as well.
"""

import re

from attnlab.errors import LabError, nearest
from attnlab.model import Model
from attnlab.taps import taps

_BLOCK = re.compile(r"encoder\.\d+\.feed_residual\.out")


def short_names(model: Model) -> dict[str, str]:
    """Paths by their short names, as far as the model has such a place."""
    found = {"read": model.read_path} if model.read_path else {}
    if model.input_path is not None:
        found["patches"] = model.input_path
    blocks = [path for path in taps(model) if _BLOCK.fullmatch(path)]
    return found | {f"block:{layer}": path for layer, path in enumerate(blocks)}


def module_names(model: Model) -> list[str]:
    """The paths of all modules, taps among them."""
    return [path for path, _ in model.named_modules() if path]


def tap_path(model: Model, name: str) -> str:
    """The path that ``name`` means: a short name, or a path itself; without one, what the readout sees."""
    short, paths = short_names(model), module_names(model)
    path = short.get(name or "read", name)
    if path not in paths:
        told = nearest(
            name, [*short, *paths], first=_useful(short), command="attnlab project RUN --tap list"
        )
        raise LabError(f"the model {type(model).__name__} has no tap or module {name!r}{told}")
    return path


def _useful(short: dict[str, str]) -> list[str]:
    """Short names, of the blocks only the last, which tells how many there are."""
    blocks = [name for name in short if name.startswith("block:")]
    return [*(name for name in ("patches", "read") if name in short), *blocks[-1:]]
