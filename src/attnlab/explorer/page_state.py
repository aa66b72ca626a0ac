"""The state of the page as text, as its URL and the widget have it; ``js/store.js`` writes the same.

run=zoo:adder&text=374%2B814&edits=off~encoder.0.self.0~zero&view=guesses
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from attnlab.errors import InputError, brief
from attnlab.explorer.edits import Edit, read_edit
from attnlab.explorer.scene import ExampleInput, Input, PixelsInput, Question, TextInput, Values

_EXAMPLE = re.compile(r"(train|valid|test)\.([0-9]{1,9})")
_PIXELS = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})\.([\w-]*)", re.ASCII)
_INPUT = ("text", "example", "pixels")


@dataclass(frozen=True)
class PageState:
    """Pairs of the hash, in its order; those that are not known here stay as they are."""

    pairs: dict[str, str]

    @staticmethod
    def read(text: str) -> "PageState":
        parts = (each.partition("=") for each in text.removeprefix("#").split("&"))
        return PageState({key: unquote(value) for key, _, value in parts if key})

    def write(self) -> str:
        return "#" + "&".join(f"{key}={quote(value, safe=_UNESCAPED)}" for key, value in self.pairs.items())

    @property
    def input(self) -> str:
        """The text, or ``valid.3`` for an example of a split; empty for what was drawn."""
        return self.pairs.get("text", self.pairs.get("example", ""))

    def with_input(self, given: str) -> "PageState":
        """The same with another input, as ``input`` writes it."""
        kind = "example" if _EXAMPLE.fullmatch(given) else "text"
        others = {key: value for key, value in self.pairs.items() if key not in (*_INPUT, "step")}
        return PageState(others | ({kind: given} if given else {}))

    @property
    def off(self) -> list[str]:
        """The names of what is switched off."""
        return [edit["at"] for edit in self._plain_edits() if edit["op"] == "off"]

    def with_off(self, names: list[str]) -> "PageState":
        """The same with these switched off and all else that was switched off on again."""
        texts = [each for each in self.pairs.get("edits", "").split("!") if each]
        kept = [each for each in texts if not each.startswith("off~") or each.split("~")[1] in names]
        there = {each.split("~")[1] for each in kept if each.startswith("off~")}
        to = self.pairs.get("to", "zero")
        kept += [f"off~{name}~{to}" for name in dict.fromkeys(names) if name not in there]
        others = {key: value for key, value in self.pairs.items() if key != "edits"}
        return PageState(others | ({"edits": "!".join(kept)} if kept else {}))

    def question(self) -> Question | None:
        """What the page asks in this state; None without an input."""
        given = self._read_input("")
        if given is None:
            return None
        edits, snapshot = self.edits(), self.pairs.get("snapshot", "")
        step = int(snapshot) if re.fullmatch(r"\d{1,12}", snapshot, re.ASCII) else None
        return Question(given, self._read_input("other-"), edits, step)

    def edits(self) -> tuple[Edit, ...]:
        return tuple(read_edit(each) for each in self._plain_edits())

    def _plain_edits(self) -> list[dict[str, Any]]:
        return [_plain_edit(each) for each in self.pairs.get("edits", "").split("!") if each]

    def _read_input(self, prefix: str) -> Input | None:
        text, example, pixels = (self.pairs.get(f"{prefix}{kind}") for kind in _INPUT)
        if text is not None:
            return TextInput(text)
        if example is not None and (match := _EXAMPLE.fullmatch(example)):
            return ExampleInput(match[1], int(match[2]))  # type: ignore[arg-type]  # one of the splits
        return None if pixels is None else PixelsInput(read_pixels(pixels))


_UNESCAPED = "!'()*-._~:,/"
"""What ``toHash`` leaves as it is, besides letters and digits."""


def _plain_edit(text: str) -> dict[str, Any]:
    op, at, *rest = [*text.split("~"), ""]
    rest = rest[:-1]
    try:
        match op:
            case "off":
                return {"op": op, "at": at, "to": rest[0]}
            case "scale":
                return {"op": op, "at": at, "by": float(rest[0])}
            case "pattern":
                rows = [each.split("_") for each in rest]
                return {
                    "op": op,
                    "at": at,
                    "rows": {row[0]: [*map(float, row[1:])] for row in rows},
                }
    except (IndexError, ValueError) as error:
        raise InputError(f"the edit {brief(text[:60])} cannot be read") from error
    return {"op": op, "at": at}


def read_pixels(text: str) -> Values:
    """``1x28x28.`` and the bytes in base64 for URLs, in which a zero is followed by how many there are."""
    match = _PIXELS.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        shape = tuple(map(int, match.groups()[:3]))
        packed, data = base64.urlsafe_b64decode(match[4] + "=" * (-len(match[4]) % 4)), bytearray()
        bytes_left = iter(packed)
        for byte in bytes_left:
            data += bytes([byte]) if byte else bytes(next(bytes_left, 0))
        return Values(np.frombuffer(bytes(data), dtype=np.uint8).reshape(shape))
    except (ValueError, binascii.Error) as error:
        raise InputError("the pixels in the state cannot be read") from error
