"""Maps of attention over one or several images of a run: what ``maps`` finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal

from attnlab.analysis.choices import MapHeads, MapScale, MapView, check_map, check_mapped
from attnlab.analysis.given_images import separate
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.maps import MapNumbers, PatchMap, default_view, maps_of, maps_reader, watch
from attnlab.analysis.samples import Given, Sample, expand, first_samples, read_inputs
from attnlab.errors import InputError
from attnlab.images import ImageTask
from attnlab.progress import Progress, silent
from attnlab.results import Result, Row, plain_fields
from attnlab.runs import RunFolder
from attnlab.specs import Split
from attnlab.specs.codec import unwritten

MOST = 96
"""Maps of one figure."""

Drawn = tuple[Sample, list[list[PatchMap]]]
"""An image, and rows of its maps."""


@dataclass(frozen=True, kw_only=True)
class _OfImage:
    input: str


@dataclass(frozen=True, kw_only=True)
class ImageMap(MapNumbers, _OfImage):
    """The numbers of one map over the image that ``input`` names."""


@dataclass(frozen=True, kw_only=True)
class Maps(Result):
    """Where attention goes on images. ``drawn`` are the images with the maps themselves; ``each`` is how
    many maps of single heads there are, where means are drawn because a figure cannot hold these.
    """

    shown_by: ClassVar[str] = "attnlab.tables.maps"

    run: str
    view: MapView
    maps: list[ImageMap]
    scale: MapScale = unwritten("fixed")
    drawn: Sequence[Drawn] = unwritten(())
    each: int = unwritten(0)

    @property
    def inputs(self) -> list[str]:
        """The names of the images."""
        return [sample.name for sample, _ in self.drawn]

    def records(self) -> list[Row]:
        """A row for each map."""
        return [
            plain_fields(each) | {"peak_row": each.peak_at[0], "peak_column": each.peak_at[1]}
            for each in self.maps
        ]


def map_run(
    run: RunFolder,
    inputs: Any = (),
    *,
    view: Literal["auto"] | MapView = "auto",
    heads: Literal["auto"] | MapHeads = "auto",
    layer: int | None = None,
    head: str = "",
    patch: str = "",
    samples: int = 1,
    split: Split = "test",
    scale: MapScale = "fixed",
    progress: Progress = silent,
) -> Maps:
    """Maps of the images that ``inputs`` are, as ``predict_images`` takes them, or of the first ``samples``
    of a split.

    A map for each head becomes one of their mean where a figure could not hold all of them. Maps are
    counted before any image but the first is looked at.
    """
    reader = maps_reader(run)
    given = _given(inputs, reader.task)
    check_mapped(bool(given), samples, split)
    first = _samples(reader, given[:1], split, 1)
    images = len(given) or (1 if samples == 1 else min(samples, len(reader.images(split).truth)))
    watched = watch(reader, first[0])
    shown: MapView = default_view(watched) if view == "auto" else view
    check_map(shown, heads, layer, head, patch)
    mapped = partial(maps_of, view=shown, layer=layer, head=head, patch=patch)
    drawn, each = _drawn_heads(heads, lambda each: images * sum(map(len, mapped(watched, heads=each))))
    chosen = first if images == 1 else _samples(reader, given, split, samples)
    found = []
    for number, sample in enumerate(chosen):
        found.append((sample, mapped(watched if number == 0 else watch(reader, sample), heads=drawn)))
        progress(number + 1, images)
    maps = [_numbers(sample, one) for sample, rows in found for row in rows for one in row]
    return Maps(run=run.name, view=shown, maps=maps, scale=scale, drawn=found, each=each)


def _numbers(sample: Sample, found: PatchMap) -> ImageMap:
    numbers = {each.name: getattr(found, each.name) for each in fields(MapNumbers)}
    return ImageMap(input=sample.name, **numbers)


def _given(inputs: Any, task: ImageTask) -> list[Given]:
    several = separate(inputs, task)
    if several is None:
        several = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    return expand(several)


def _samples(reader: ImageClassifier, given: list[Given], split: Split, count: int) -> list[Sample]:
    return read_inputs(reader, given) if given else first_samples(reader, split=split, count=count)


def _drawn_heads(
    asked: Literal["auto"] | MapHeads, count: Callable[[MapHeads], int]
) -> tuple[MapHeads, int]:
    """How heads are drawn: by default each, or their mean where one figure cannot hold a map of each; and
    how many maps of each there are then.
    """
    each: MapHeads = "each" if asked == "auto" else asked
    drawn: MapHeads = "mean" if asked == "auto" and count(each) > MOST else each
    if count(drawn) > MOST:
        means = " or fewer images" if drawn == "mean" else ", fewer images or the mean of heads"
        raise InputError(
            f"this asks for {count(drawn):,} maps and a figure holds {MOST}; choose a layer, a head{means}"
        )
    return drawn, 0 if drawn == each else count(each)
