"""``attnlab predict`` for images: pictures in, classes out, drawn beside the answer."""

import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from attnlab.analysis import percent
from attnlab.analysis.given_images import Picture
from attnlab.analysis.samples import FEW, NOT_SURE, ImagePrediction, Refused, Sample
from attnlab.cli.output import print_json, print_lines, print_text
from attnlab.data.pictures import MOST_BYTES
from attnlab.display import say
from attnlab.errors import InputError
from attnlab.figures.braille import card, picture_width

_PLAIN = re.compile(rb"P[1-3]\s")  # how pictures written out as text begin
RIVALS = 2
EXIT_UNREAD = 2
"""Some inputs could not be read."""


def given_pictures(inputs: Sequence[str]) -> list[str | Picture]:
    """The inputs, with standard input, a picture or names a line each, in the place of -."""
    given: list[str | Picture] = []
    for text in inputs:
        given += _standard_input() if text == "-" else [text]
    if not given:
        raise InputError("there is nothing to read; give a picture, a folder of pictures, or test:7")
    return given


def _standard_input() -> list[str] | list[Picture]:
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"standard input has more than {MOST_BYTES:,} bytes; give a file instead")
    picture = Picture("standard input", content)
    if _PLAIN.match(content):
        return [picture]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return [picture]
    return [picture] if "\0" in text else [line for line in text.splitlines() if line.strip()]


def print_answers(answers: Sequence[ImagePrediction | Refused], *, picture: bool, json: bool) -> int:
    """Print what is said, with ``picture`` what was read, and a sentence for each input that cannot be
    read; the exit code.
    """
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    if len(refused) == len(answers) == 1:
        raise refused[0].error
    samples = [answer.sample for answer in answers if not isinstance(answer, Refused) and answer.sample]
    if json:
        print_json([_plain(answer, picture=picture) for answer in answers])
    elif picture or (sys.stdout.isatty() and len(samples) <= FEW):
        for sample in samples:
            print_lines(beside(card(sample, picture_width(), caption=False), _words(sample)))
    else:
        for sample in samples:
            print_text("   ".join(_words(sample)[:2]))
    for each in refused:
        say(f"attnlab: {each.error}")
    return EXIT_UNREAD if refused else 0


def _plain(answer: ImagePrediction | Refused, *, picture: bool) -> dict[str, Any]:
    """With what was read, if it is asked for."""
    if isinstance(answer, Refused) or answer.sample is None or not picture:
        return answer.to_json()
    return {**answer.to_json(), "pixels": answer.sample.pixels.tolist()}


def beside(picture: list[Text], words: list[str]) -> list[Text]:
    """Words to the right of a picture, half way down, or below it where there is no room."""
    if max(line.cell_len for line in picture) + 2 + max(map(len, words)) > picture_width():
        return [*picture, *map(Text, words)]
    top = (len(picture) - len(words)) // 2
    lines = [line.copy() for line in picture]
    for line, word in zip(lines[top:], words, strict=False):
        line.append(f"  {word}")
    return lines


def _words(sample: Sample) -> list[str]:
    """The answer; whether it is right; for single classes, which others were likely."""
    likely = f", likeliest {sample.output}" if sample.text == NOT_SURE else ""
    told = [f"{sample.name} = {sample.text}   (p = {percent(sample.probability)}{likely})"]
    if sample.truth is not None:
        told.append("correct" if sample.right else f"wrong, it is {sample.shown}")
    if sample.probabilities.shape[0] > 1:
        return told
    ranks = sample.probabilities[0].argsort(descending=True).tolist()[1 : 1 + RIVALS]
    rivals = ", ".join(
        f"{sample.named([each])} ({percent(sample.probabilities[0, each].item())})" for each in ranks
    )
    return [*told, f"then {rivals}"]
