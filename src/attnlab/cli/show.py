"""``attnlab show``: images with what a run says about them, in the terminal."""

from attnlab.cli.output import print_json, print_lines, print_text
from attnlab.cli.parsing import Positional, Seed
from attnlab.front.loading import load
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
    """Show images as Braille dots, with what they show and what the run says.

    Example: attnlab show zoo:digit --samples 10 --wrong

    Args:
        run: A run folder, a shipped run, or the folder of an ensemble.
        samples: How many images.
        wrong: Only images that the run misclassifies.
        split: Where the images come from.
        seed: Which images: another seed draws others.
        json: Print JSON instead of pictures.
    """
    found = load(run).show(samples=samples, wrong=wrong, split=split, seed=seed)
    from attnlab.figures.braille import LEGEND, braille, card, picture_width, side_by_side
    from attnlab.tables.show import counted

    drawn = [each.sample for each in found.samples if each.sample is not None]
    if json:
        pictures = [{"picture": braille(sample.pixels)} for sample in drawn]
        plain = found.to_json()
        print_json({**plain, "samples": [a | b for a, b in zip(plain["samples"], pictures, strict=True)]})
        return
    width = picture_width()
    print_lines(side_by_side([card(sample, width) for sample in drawn], width))
    if drawn:
        print_text("", *LEGEND)
    for sentence in counted(found):
        print_text(sentence)
