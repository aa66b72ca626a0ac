"""Telling 26 letters apart: pictures of 32 x 32 pixels in colour, in a folder for each letter.

python examples/letters.py letters          # draws the pictures
attnlab train examples/letters.py --directory letters
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar

from attnlab.pictures import Pictures


@dataclass(frozen=True, kw_only=True)
class Letters(Pictures):
    """Which letter a picture shows."""

    kind: ClassVar[str] = "letters"

    directory: str = ""
    """A folder with a folder of pictures for each letter."""


def draw_letters(folder: Path, each: int = 60, letters: str = ascii_uppercase) -> None:
    """Write ``each`` pictures of every letter: other colours, sizes and places in every one."""
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    file, rng = font_manager.findfont("DejaVu Sans"), random.Random(0)
    for letter in letters:
        (folder / letter).mkdir(parents=True, exist_ok=True)
        for number in range(each):
            dark, bright = (tuple(rng.randint(*ends) for _ in range(3)) for ends in ((0, 80), (150, 255)))
            picture = Image.new("RGB", (32, 32), dark)
            place = (16 + rng.uniform(-3, 3), 16 + rng.uniform(-3, 3))
            font = ImageFont.truetype(file, rng.randint(18, 26))
            ImageDraw.Draw(picture).text(place, letter, fill=bright, font=font, anchor="mm")
            picture.save(folder / letter / f"{number}.png")


if __name__ == "__main__":
    draw_letters(Path(sys.argv[1]))
