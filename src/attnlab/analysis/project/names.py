"""Short names of places in a model, the same for every model that has them.

    patches    tokens before any block: the patches of an image
    block:n    tokens after block n of the encoder, from 0 on
    read       what the readout sees, or nearly so

Any tap and any module goes by its path as well.
"""

from attnlab.errors import LabError, nearest
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq
from attnlab.models.images import CNN


def default_tap(model: Model) -> str:
    """What the readout of a model sees, or nearly so."""
    if isinstance(model, Classifier):
        return "pool"
    if isinstance(model, Seq2Seq):
        return "decoder_norm"
    return "pool" if isinstance(model, CNN) else "up"


def short_names(model: Model) -> dict[str, str]:
    """Paths by their short names, as far as the model has such a place."""
    found = {"read": default_tap(model)}
    if isinstance(model, Classifier | Seq2Seq):
        found["patches"] = "embed" if isinstance(model, Classifier) else "source_embed"
        for layer in range(len(model.encoder)):
            found[f"block:{layer}"] = f"encoder.{layer}.feed_residual.out"
    return found


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
