"""Images of a split with what a model says about them."""

from collections.abc import Iterator

from attnlab.analysis.samples import ShownImages
from attnlab.analysis.statistics import percent
from attnlab.figures.samples import draw_samples, samples_data
from attnlab.results import Drawing, Part, Table


def tables(found: ShownImages) -> Iterator[Part]:
    yield Table(
        f"{found.run}: {len(found.samples)} {found.split} images",
        ("image", "shown", "answer", "probability"),
        tuple(
            (each.input, each.truth or "", each.output, percent(each.probability)) for each in found.samples
        ),
    )
    yield from counted(found)


def figures(found: ShownImages) -> dict[str, Drawing]:
    drawn = [each.sample for each in found.samples if each.sample is not None]
    return {"images": Drawing(samples_data(drawn), draw_samples)} if drawn else {}


def counted(found: ShownImages) -> Iterator[str]:
    """How many are misclassified, if that was counted."""
    if found.wrong == 0:
        yield f"{found.run} classifies all {found.images:,} {found.split} images correctly"
    elif found.wrong is not None:
        count = f"{found.wrong:,} of {found.images:,} {found.split} images"
        yield f"{found.run} misclassifies {count}; here are {len(found.samples):,} of them"
