"""``attnlab maps``: where attention goes on an image."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnlab.analysis.choices import MapHeads, MapScale, MapView
from attnlab.cli.drawing import file_name, write_out
from attnlab.cli.output import print_table, tell
from attnlab.cli.parsing import Positional
from attnlab.display import say
from attnlab.errors import InputError
from attnlab.runs import open_run
from attnlab.specs import Split
from attnlab.storage import check_out

if TYPE_CHECKING:
    from attnlab.analysis.image_classifier import ImageClassifier
    from attnlab.analysis.samples import Given, Sample

MOST = 96
"""Maps of one figure."""
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
        scale: One scale for all maps, from 0 to 4 times uniform attention, or one for each map.
        out: A file that ends in .svg or .png, or a folder for both, with JSON; by default figures in the
            run folder, or here for a shipped run.
        json: Print numbers and files as JSON.
    """
    check_out(out, ".svg", ".png", folder=True)
    _check_images(inputs, split, samples)
    opened = open_run(run)
    from attnlab.analysis.maps import default_view, maps_of, maps_reader, watch
    from attnlab.analysis.samples import expand
    from attnlab.figures.maps import draw_maps, maps_data

    reader = maps_reader(opened)
    given = expand(inputs)
    first = _samples(reader, given[:1], split, 1)
    images = len(given) or (1 if samples == 1 else min(samples, len(reader.images(split).truth)))
    watched = watch(reader, first[0])
    shown: MapView = default_view(watched) if view == "auto" else view
    _check_choice(shown, heads, layer, head, patch)
    mapped = partial(maps_of, view=shown, layer=layer, head=head, patch=patch)
    drawn = _drawn_heads(heads, lambda each: images * sum(map(len, mapped(watched, heads=each))))
    chosen = first if images == 1 else _samples(reader, given, split, samples)
    seen = [watched, *(watch(reader, sample) for sample in chosen[1:])]
    found = [mapped(each, heads=drawn) for each in seen]
    data = maps_data(shown, list(zip(chosen, found, strict=True)), scale=scale)
    name = file_name("maps", shown, *_differing(heads, layer, head, patch, scale), *_images(chosen))
    files = [*map(str, write_out(opened, out, name, data, draw_maps))]
    maps = [
        {"input": image.input, **{key: value for key, value in each.to_json().items() if key != "weights"}}
        for image in data.images
        for row in image.rows
        for each in row
    ]
    result = {"run": opened.name, "view": shown, "maps": maps, "files": files}
    tell(result, partial(_show, cells=data.images[0].cells), json=json)


def _check_images(inputs: tuple[str, ...], split: Split, samples: int) -> None:
    """Images are named or taken from a split, not both."""
    given = [f"--samples is {samples}"] if samples != 1 else []
    given += [f"--split is {split}"] if split != "test" else []
    if inputs and given:
        raise InputError(f"{' and '.join(given)}, but the images are named; leave either away")
    if samples < 1:
        raise InputError(f"--samples is {samples}; it must be at least 1")


def _check_choice(view: MapView, heads: str, layer: int | None, head: str, patch: str) -> None:
    """Refuse what would change nothing."""
    if patch and view != "sent":
        raise InputError(f"--patch is {patch!r}, but the view is {view}; a patch sends with --view sent")
    if head and layer is not None:
        raise InputError(f"--head is {head} and --layer is {layer}; give one of the two")
    if head and heads != "auto":
        raise InputError(f"--head is {head} and --heads is {heads}; give one of the two")
    if view == "rollout" and (head or layer is not None or heads in ("each", "max")):
        raise InputError(
            "--view is rollout, which goes through all layers and the mean of their heads; leave --layer, "
            "--head and --heads away"
        )


def _samples(reader: "ImageClassifier", given: "list[Given]", split: Split, count: int) -> "list[Sample]":
    from attnlab.analysis.samples import first_samples, read_inputs

    return read_inputs(reader, given) if given else first_samples(reader, split=split, count=count)


def _drawn_heads(asked: Literal["auto"] | MapHeads, count: Callable[[MapHeads], int]) -> MapHeads:
    """How heads are drawn: by default each, or their mean where one figure cannot hold a map of each."""
    each: MapHeads = "each" if asked == "auto" else asked
    drawn: MapHeads = "mean" if asked == "auto" and count(each) > MOST else each
    if count(drawn) > MOST:
        others = "a --head or fewer images" if drawn == "mean" else "a --head, fewer images or --heads mean"
        raise InputError(
            f"this asks for {count(drawn):,} maps and a figure holds {MOST}; choose a --layer, {others}"
        )
    if drawn != each:
        say(
            f"maps are means over the heads of a layer: one of each head would be {count(each):,} maps and "
            f"a figure holds {MOST}; --layer or --head chooses some"
        )
    return drawn


def _differing(heads: str, layer: int | None, head: str, patch: str, scale: MapScale) -> list[str]:
    """Words for what is not as by default, so that no figure takes the place of another."""
    words = [heads] if heads != "auto" else []
    words += [f"layer{layer}"] if layer is not None else []
    words += [head] if head else []
    words += [f"patch{''.join(patch.split())}"] if patch else []
    return words + (["own-scale"] if scale == "map" else [])


def _images(chosen: "list[Sample]") -> list[str]:
    """Words for the images: their names, or how many there are and eight digits of all names' SHA-256."""
    names = [sample.name for sample in chosen]
    if len(names) <= _NAMED:
        return [Path(name).name for name in names]
    return [f"{len(names)}-images", sha256("\n".join(names).encode()).hexdigest()[:8]]


def _show(found: dict[str, Any], *, cells: int) -> None:
    """A row for each map, and the files that were written; ``cells`` are the digits of an image."""
    maps = found["maps"]
    rows = [_cells(each, found["view"]) for each in maps]
    title = (
        f"{found['run']}: {found['view']}, entropy of each map against its maximum, peak where 1 is uniform"
    )
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])
    if any(each["evenness"] is None for each in maps):
        print("a map of one patch is as even as it is sharp: its entropy is 0 and has no share")
    if maps[0]["on_digit"] is not None:
        even = f"an even map gives it {1 / cells:.0%}"
        print(f"on digit: what the digit that is being said gets of the map; {even}")
    print("\n".join(found["files"]))


def _cells(each: dict[str, Any], view: str) -> dict[str, str]:
    """Cells by the names of their columns; which there are depends on the view alone."""
    cells = {
        "map": each["map"],
        "image": each["input"],
        "of": each["of"],
        "entropy": f"{each['entropy']:.2f}",
        "at most": f"{each['most_entropy']:.2f}",
        "share": _share(each["evenness"]),
        "peak": f"{each['peak']:.2f}",
        "at patch": "{},{}".format(*each["peak_at"]),
        "in front": _share(each["front"]),
    }
    if view == "received":
        cells["entropy of rows"] = _share(each["entropy_of_rows"])
    if each["on_digit"] is not None:
        cells["on digit"] = _share(each["on_digit"])
    return cells


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.0f}%"
