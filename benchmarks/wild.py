"""How well ``predict`` reads pictures that are not MNIST's: many fonts, drawings as with a mouse, photos.

    python benchmarks/wild.py                                       # a table of the half to develop on
    python benchmarks/wild.py --half held-out --out results/wild/wild.json     # once, at the end
    python benchmarks/wild.py --sheets /tmp/sheets                  # pictures and what was read of them

Pictures are made by ``wild_pictures.py``, the same ones every time. No model has learned from any of them;
preprocessing was developed on one half of the sources (fonts, hands), and the other half is held out.

Fonts are searched for in ``/usr/share/fonts`` or ``--fonts``: one face of each family of Debian's packages
of ``PACKAGES``, which ``apt-get download`` and ``dpkg -x`` unpack anywhere.
"""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from PIL import Image, ImageDraw, ImageFont
from wild_pictures import (
    Wild,
    pictures_of_fonts,
    pictures_of_grids,
    pictures_of_photos,
    pictures_of_strokes,
)

from attnlab.analysis.choices import SURE
from attnlab.analysis.given_images import Picture
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.samples import ImagePrediction, Refused, predict_images
from attnlab.analysis.statistics import proportion_interval
from attnlab.progress import silent
from attnlab.runs import describe_environment, open_run
from attnlab.storage import make_folder, write_json

COMMAND = "python benchmarks/wild.py"
PACKAGES = """
adf-accanthis adf-baskervald adf-berenis adf-gillius adf-ikarius adf-irianis adf-libris adf-mekanus
adf-romande adf-solothurn adf-switzera adf-tribun adf-universalis adf-verana alee anonymous-pro
aoyagi-kouzan-t arkpandora averia-sans-gwf averia-serif-gwf b612 bebas-neue beteckna breip cabin
cantarell century-catalogue clear-sans comfortaa courier-prime creep2 crosextra-caladea crosextra-
carlito cwtex-kai dancingscript dejavu-core dejavu-extra dosis dustin ebgaramond ecolier-court
ecolier-lignes-court fanwood femkeklaver firacode freefont-ttf gfs-didot goudybookletter hack hosny-
amiri humor-sans inconsolata isabella jetbrains-mono junction junicode jura kalapi kristi lato le-
murmure league-mono liberation liberation2 lindenhill linex linuxlibertine lobster lobstertwo
manchufont mathjax monoid mononoki mplus nanum noto-core noto-mono ocr-a ocr-b okolaks oldstandard
open-sans opendyslexic play prociono quicksand radisnoir recommended roboto-unhinted rufscript
sawarabi-gothic sil-andika sil-charis sil-doulos sil-gentium sixtyfour sora spleen staypuft
terminus-otb texgyre tiresias tlwg-loma tomsontalks ukij-uyghur unikurdweb vollkorn wine yanone-
kaffeesatz
"""
"""Of each the name behind ``fonts-``."""
FEWEST = 60
THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
READERS = {"grids": "zoo:grid", "tables": "zoo:grid"}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    half: Literal["develop", "held-out"] = "develop"
    fonts: tuple[Path, ...] = (Path("/usr/share/fonts"),)
    """Folders with fonts, which are searched for one face of each family."""
    hands: int = 60
    """Hands that write strokes, photos and grids."""
    sheets: Path | None = None
    """A folder for pictures of the pictures, each beside what was read of it."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


@dataclass(frozen=True)
class Share:
    group: str
    condition: str
    pictures: int
    correct: int
    accuracy: float
    interval: tuple[float, float]
    refused: int
    not_sure: int
    wrong: int
    """Wrong answers that are not held back as not sure."""


@dataclass(frozen=True)
class Point:
    threshold: float
    answered: float
    accuracy: float | None


Answered = tuple[Wild, ImagePrediction | Refused]


def main(options: Options) -> None:
    held_out = options.half == "held-out"
    fonts = one_face_each(options.fonts)
    if len(fonts) < FEWEST:
        print(
            f"fonts are left out: {len(fonts)} families in {', '.join(map(str, options.fonts))}, and the "
            f"benchmark takes {FEWEST} at least; install fonts-{' fonts-'.join(PACKAGES.split())}",
            file=sys.stderr,
        )
        fonts = []
    answered = [each for each in _answered(fonts, options.hands) if each[0].held_out == held_out]
    found = {
        "half": options.half,
        "fonts": len(fonts),
        "faces": [font.stem for font in fonts],
        "hands": options.hands,
        "pictures": len(answered),
        "sure": SURE,
        "groups": [asdict(each) for each in _shares(answered, by_condition=False)],
        "conditions": [asdict(each) for each in _shares(answered, by_condition=True)],
        "coverage": [asdict(each) for each in _coverage(answered)],
    }
    if options.sheets is not None:
        _draw_sheets(options.sheets, answered)
    if options.out is not None:
        make_folder(options.out.parent)
        words = f"{COMMAND} --half {options.half}"
        write_json(
            options.out, {"command": words, "environment": describe_environment().to_json(), **found}
        )
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)


def one_face_each(folders: tuple[Path, ...]) -> list[Path]:
    """A face of each family, by name, a plain one if there is one; symbols and others without digits are
    left out.
    """
    found: dict[str, tuple[bool, Path]] = {}
    files = sorted({file for folder in folders for file in folder.rglob("*.[ot]tf")}, key=lambda f: f.name)
    for file in files:
        try:
            face = ImageFont.truetype(str(file), 40)
            family, style = face.getname()
            shapes = {bytes(face.getmask(str(digit))) for digit in range(10)}
        except (OSError, ValueError):
            continue
        plain = (style or "").lower() in ("regular", "book", "roman", "normal", "medium")
        if family and len(shapes) == 10 and (family not in found or plain > found[family][0]):
            found[family] = plain, file
    return [found[family][1] for family in sorted(found)]


def _answered(fonts: list[Path], hands: int) -> Iterator[Answered]:
    """Every picture with what is said about it, a group at a time."""
    groups = (
        pictures_of_fonts(fonts),
        pictures_of_strokes(hands),
        pictures_of_photos(hands),
        pictures_of_grids(hands),
    )
    readers = {name: image_classifier(open_run(name)) for name in ("zoo:digit", "zoo:grid")}
    for pictures in groups:
        for group, some in groupby(pictures, key=lambda each: each.group):
            wild = list(some)
            given = [Picture(f"{group} {number}", each.content) for number, each in enumerate(wild)]
            reader = readers[READERS.get(group, "zoo:digit")]
            yield from zip(wild, predict_images(reader, given, lambda _: silent, sure=SURE), strict=True)


def _is_right(wild: Wild, said: ImagePrediction | Refused) -> bool:
    return isinstance(said, ImagePrediction) and said.output == wild.truth


def _shares(answered: list[Answered], *, by_condition: bool) -> Iterator[Share]:
    def key(each: Answered) -> tuple[str, str]:
        return each[0].group, each[0].condition if by_condition else ""

    for (group, condition), some in groupby(sorted(answered, key=key), key=key):
        rows = list(some)
        right = sum(_is_right(*each) for each in rows)
        said = [(wild, each) for wild, each in rows if isinstance(each, ImagePrediction)]
        yield Share(
            group,
            condition,
            len(rows),
            right,
            right / len(rows),
            proportion_interval(right, len(rows)),
            refused=len(rows) - len(said),
            not_sure=sum(not each.sure for _, each in said),
            wrong=sum(each.sure and not _is_right(wild, each) for wild, each in said),
        )


def _coverage(answered: list[Answered]) -> Iterator[Point]:
    """Of single digits: which share is answered at each threshold, and how many of these are right."""
    single = [each for each in answered if len(each[0].truth) == 1]
    sure = np.array([s.probability if isinstance(s, ImagePrediction) else -1.0 for _, s in single])
    right = np.array([_is_right(*each) for each in single])
    for threshold in THRESHOLDS:
        kept = sure >= threshold
        yield Point(threshold, float(kept.mean()), float(right[kept].mean()) if kept.any() else None)


def _print(found: dict[str, Any]) -> None:
    print(
        f"{found['pictures']:,} pictures to {found['half']}, {found['fonts']} fonts, {found['hands']} hands"
    )
    for row in (*found["groups"], *found["conditions"]):
        low, high = row["interval"]
        print(
            f"  {row['group']:8} {row['condition']:15} {row['accuracy']:7.2%} of {row['pictures']:4}   "
            f"(95%: {low:.1%} to {high:.1%})   refused {row['refused']}, not sure {row['not_sure']}, "
            f"wrong {row['wrong']}"
        )
    for point in found["coverage"]:
        right = "" if point["accuracy"] is None else f"{point['accuracy']:.2%}"
        print(
            f"  at least {point['threshold']:.0%}: {point['answered']:.1%} answered, {right} of these right"
        )


TILE, ACROSS, MOST = 112, 12, 96


def _draw_sheets(folder: Path, answered: list[Answered]) -> None:
    """Of each group and condition a sheet: wrong ones first, each above what was read of it."""
    make_folder(folder)

    def key(each: Answered) -> tuple[str, str]:
        return each[0].group, each[0].condition

    for (group, condition), some in groupby(sorted(answered, key=key), key=key):
        rows = sorted(some, key=lambda each: _is_right(*each))[:MOST]
        lines = -(-len(rows) // ACROSS)
        sheet = Image.new("RGB", (ACROSS * TILE, lines * (2 * TILE + 16)), "grey")
        draw = ImageDraw.Draw(sheet)
        for place, (wild, said) in enumerate(rows):
            x, y = place % ACROSS * TILE, place // ACROSS * (2 * TILE + 16)
            sheet.paste(
                Image.open(io.BytesIO(wild.content)).convert("RGB").resize((TILE - 2, TILE - 2)), (x, y)
            )
            words = "refused"
            if isinstance(said, ImagePrediction) and said.sample is not None:
                read = Image.fromarray(said.sample.pixels.numpy()).resize((TILE - 2, TILE - 2), 0)
                sheet.paste(read.convert("RGB"), (x, y + TILE))
                words = f"{wild.truth}: {said.output} {said.probability:.0%}"
            colour = "lime" if _is_right(wild, said) else "red"
            draw.text((x + 2, y + 2 * TILE), words, fill=colour)
        sheet.save(folder / f"{group}-{condition.replace(' ', '-')}.png")


if __name__ == "__main__":
    main(tyro.cli(Options))
