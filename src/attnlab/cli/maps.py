"""``attnlab maps``: where attention goes on an image."""

from hashlib import sha256
from pathlib import Path
from typing import Literal

from attnlab.analysis.choices import MapHeads, MapScale, MapView, check_mapped
from attnlab.cli.drawing import file_name, write_main
from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Positional
from attnlab.front.loading import load
from attnlab.specs import Split
from attnlab.storage import check_out

_NAMED = 3  # images that the name of a figure tells one by one


def command(
    run: Positional[str],
    inputs: Positional[tuple[str, ...]] = (),
    *,
    view: Literal["auto"] | MapView = "auto",
    heads: Literal["auto"] | MapHeads = "auto",
    layer: int | None = None,
    head: str = "",
    patch: str = "",
    samples: int = 1,
    split: Split = "test",
    scale: MapScale = "fixed",
    out: str = "",
    json: bool = False,
) -> None:
    """Draw what each patch of an image gets of a model's attention.

    Example: attnlab maps zoo:digit test:7

    Example: attnlab maps zoo:grid test:0 --view digits --heads mean

    Args:
        run: A run folder of the tasks digits or grids.
        inputs: Images of the task such as test:7, or pictures; by default the first of the split.
        view: received: from all queries; sent: from one patch; cls: from the token in front; digits: from
            cross attention, for each digit that is said; rollout: through all layers. By default digits, or
            cls, or received, whichever the model has.
        heads: A map for each head, one of their mean, or one of the highest weight of any; by default each,
            as long as the figure can hold them. Rollout takes the mean.
        layer: Only this layer, counted from 0.
        head: Only this head, such as encoder.1.self.3.
        patch: Row and column of the patch that sends, such as 3,2; by default the one with the most ink.
        samples: How many images of the split, if none are named.
        split: Where they come from.
        scale: fixed: one scale for all maps, from 0 to 4 times uniform attention or to the highest weight;
            map: one for each map.
        out: A file that ends in .svg or .png, or a folder for both, with JSON; by default figures in the
            run folder, or here for a shipped run.
        json: Print numbers and files as JSON.
    """
    check_out(out, ".svg", ".png", folder=True)
    check_mapped(bool(inputs), samples, split)
    opened = load(run)
    found = opened.maps(
        inputs,
        view=view,
        heads=heads,
        layer=layer,
        head=head,
        patch=patch,
        samples=samples,
        split=split,
        scale=scale,
    )
    words = _differing(heads, layer, head, patch, scale)
    name = file_name("maps", found.view, *words, *_images(found.inputs))
    files = [*map(str, write_main(found, opened, out, name=name))]
    if json:
        print_json({**found.to_json(), "files": files})
    else:
        print_parts([*found.tables(), *files])


def _differing(heads: str, layer: int | None, head: str, patch: str, scale: MapScale) -> list[str]:
    """Words for what is not as by default, so that no figure takes the place of another."""
    words = [heads] if heads != "auto" else []
    words += [f"layer{layer}"] if layer is not None else []
    words += [head] if head else []
    words += [f"patch{''.join(patch.split())}"] if patch else []
    return words + (["own-scale"] if scale == "map" else [])


def _images(names: list[str]) -> list[str]:
    """Words for the images: their names, or how many there are and eight digits of all names' SHA-256."""
    if len(names) <= _NAMED:
        return [Path(name).name for name in names]
    return [f"{len(names)}-images", sha256("\n".join(names).encode()).hexdigest()[:8]]
