"""``attnlab show``: digits with what a run reads in them, in the terminal."""

from contextlib import nullcontext

from attnlab.cli.output import print_json, print_lines
from attnlab.cli.parsing import Positional, Seed
from attnlab.display import Meter
from attnlab.runs import find_ensemble, open_run
from attnlab.specs import Split


def command(
    run: Positional[str],
    *,
    samples: int = 10,
    wrong: bool = False,
    split: Split = "test",
    seed: Seed = 0,
    json: bool = False,
) -> None:
    """Show images of digits as Braille dots, with what is shown and what the run reads.

    Example: attnlab show zoo:digit --samples 10 --wrong

    Args:
        run: A run folder, a shipped run, or the folder of an ensemble.
        samples: How many images.
        wrong: Only images that the run reads wrongly.
        split: Where the images come from.
        seed: Which images: another seed draws others.
        json: Print JSON instead of pictures.
    """
    opened = find_ensemble(run) or open_run(run)
    from attnlab.analysis.image_classifier import open_classifier
    from attnlab.analysis.samples import draw_samples
    from attnlab.figures.braille import LEGEND, braille, card, picture_width, side_by_side
    from attnlab.progress import silent

    reader = open_classifier(opened)
    with Meter("reading", 1) if wrong else nullcontext() as meter:
        progress = silent if meter is None else meter.update
        drawn = draw_samples(reader, split=split, count=samples, wrong=wrong, seed=seed, progress=progress)
    if json:
        told = [
            {**sample.result().to_json(), "picture": braille(sample.pixels)} for sample in drawn.samples
        ]
        counts = {"images": drawn.images, "wrong": drawn.wrong}
        print_json({"run": reader.name, "split": split, **counts, "samples": told})
        return
    width = picture_width()
    print_lines(side_by_side([card(sample, width) for sample in drawn.samples], width))
    if drawn.wrong == 0:
        print(f"{reader.name} reads all {drawn.images:,} {split} images rightly")
        return
    print("", *LEGEND, sep="\n")
    if drawn.wrong is not None:
        count = f"{drawn.wrong:,} of {drawn.images:,} {split} images"
        print(f"{reader.name} reads {count} wrongly; here are {len(drawn.samples):,} of them")
