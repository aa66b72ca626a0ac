"""``attnlab maps``: where attention goes on an image."""

from pathlib import Path
from typing import Any, Literal

import tyro

from attnlab.analysis.asking import ask, expand
from attnlab.analysis.evaluation import Split
from attnlab.analysis.maps import PatchMap, View, default_view, maps_of, maps_reader, watch
from attnlab.analysis.reading import Reader
from attnlab.analysis.samples import Sample, first_samples
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import parse
from attnlab.cli.places import check_out, file_name
from attnlab.errors import InputError
from attnlab.figures.files import write_figure, write_picture
from attnlab.figures.maps import Scale, draw_maps, maps_data
from attnlab.runs import Run, open_run

MOST = 96
"""Maps of one figure."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="maps")


def command(
    run: tyro.conf.Positional[str],
    inputs: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    view: Literal["auto"] | View = "auto",
    heads: Literal["auto", "each", "mean", "max"] = "auto",
    layer: int | None = None,
    head: str = "",
    patch: str = "",
    samples: int = 1,
    split: Split = "test",
    scale: Scale = "fixed",
    out: str = "",
    json: bool = False,
) -> int:
    """Draw what each patch of an image gets of a model's attention.

    Example: attnlab maps runs/digits-vit-s0 test:7

    Example: attnlab maps runs/grids-default-s0 test:0 --view digits --heads mean

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
            run folder.
        json: Print numbers and files as JSON.
    """
    if out:
        check_out(out, ".svg", ".png", folder=True)
    opened = open_run(run)
    reader = maps_reader(opened)
    chosen = _samples(reader, inputs, split, samples)
    seen = [watch(reader, sample) for sample in chosen]
    shown: View = default_view(seen[0]) if view == "auto" else view
    _check_choice(shown, heads, layer, head, patch)

    def mapped(heads: Literal["each", "mean", "max"]) -> list[list[list[PatchMap]]]:
        options = {"heads": heads, "layer": layer, "head": head, "patch": patch}
        return [maps_of(each, shown, **options) for each in seen]  # type: ignore[arg-type]

    found = mapped("each" if heads == "auto" else heads)
    if heads == "auto" and _count(found) > MOST:
        found = mapped("mean")
    if _count(found) > MOST:
        raise InputError(
            f"this asks for {_count(found)} maps and a figure holds {MOST}; choose a --layer, a --head, "
            "fewer images or --heads mean"
        )
    data = maps_data(shown, list(zip(chosen, found, strict=True)), scale=scale)
    name = _file_name(shown, heads, layer, head, chosen)
    files = _write(opened, out, name, data)
    _tell(opened.name, data, [str(path) for path in files], json=json)
    return 0


def _check_choice(view: View, heads: str, layer: int | None, head: str, patch: str) -> None:
    """Refuse what would change nothing."""
    if patch and view != "sent":
        raise InputError(f"--patch is {patch!r}, but the view is {view}; a patch sends with --view sent")
    if head and layer is not None:
        raise InputError(f"--head is {head} and --layer is {layer}; give one of the two")
    if view == "rollout" and (head or layer is not None or heads in ("each", "max")):
        raise InputError(
            "--view is rollout, which goes through all layers and the mean of their heads; leave --layer, "
            "--head and --heads away"
        )


def _write(run: Run, out: str, name: str, data: dict[str, Any]) -> list[Path]:
    """The file that is asked for, or all kinds in a folder."""
    path = Path(out)
    if path.suffix in (".svg", ".png"):
        return write_picture(path, data, draw_maps(data))
    folder = path if out else Path("figures") if run.shipped else run.file("figures")
    return write_figure(folder, name, data, draw_maps(data))


def _samples(reader: Reader, inputs: tuple[str, ...], split: Split, count: int) -> list[Sample]:
    if inputs:
        return ask(reader, expand(inputs))
    if count < 1:
        raise InputError(f"--samples is {count}; it must be at least 1")
    return first_samples(reader, split=split, count=count)


def _count(found: list[list[list[PatchMap]]]) -> int:
    return sum(len(row) for rows in found for row in rows)


def _file_name(view: str, heads: str, layer: int | None, head: str, chosen: list[Sample]) -> str:
    words = ["maps", view, *([heads] if heads != "auto" else [])]
    words += [*([f"layer{layer}"] if layer is not None else []), *([head] if head else [])]
    images = Path(chosen[0].name).name if len(chosen) == 1 else f"{len(chosen)}-images"
    return file_name(*words, images)


def _tell(run: str, data: dict[str, Any], files: list[str], *, json: bool) -> None:
    maps = [
        {"input": image["input"], **{key: value for key, value in each.items() if key != "weights"}}
        for image in data["images"]
        for row in image["rows"]
        for each in row
    ]
    if json:
        print_json({"run": run, "view": data["view"], "maps": maps, "files": files})
        return
    print_table(
        f"{run}: {data['view']}, entropy of each map against its maximum, peak where 1 is uniform",
        ("map", "image", "of", "entropy", "at most", "share", "peak", "at patch", "in front"),
        [
            (
                each["map"],
                each["input"],
                each["of"],
                f"{each['entropy']:.2f}",
                f"{each['most_entropy']:.2f}",
                f"{100 * each['entropy'] / max(each['most_entropy'], 1e-9):.0f}%",
                f"{each['peak']:.2f}",
                "{},{}".format(*each["peak_at"]),
                f"{100 * each['front']:.0f}%",
            )
            for each in maps
        ],
    )
    print("\n".join(files))
