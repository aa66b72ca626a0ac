"""A scene as HTML that needs neither scripts nor files: what stays of a widget without a kernel."""

import base64
import io
from html import escape

import numpy as np
from jaxtyping import Float

from attnlab.explorer.edits import Edit, Off, Paint, Scale, StandInName, Swap
from attnlab.explorer.scene import Question, Scene, Subject, Values

_INK = np.array([29, 79, 184])  # of style.css: a weight of 1; 0 is white
MOST_TOKENS = 32
STAND_INS: dict[StandInName, str] = {
    "zero": "zero",
    "mean": "its mean over training examples",
    "resample": "its value for another example",
}
_HEAD = "display:inline-block;margin:0 8px 8px 0;font:12px system-ui,sans-serif;text-align:center"
_IMAGE = "display:block;width:96px;height:96px;image-rendering:pixelated;border:1px solid #d5dbe4"


def snapshot_html(subject: Subject, question: Question, scene: Scene, mark: str = "") -> str:
    """The input, the answer and its tokens as a table, and every head as a picture; ``mark`` names it."""
    parts = [_answer(scene), _edits(question), _tokens(scene), _pixels(scene.input.pixels), _heads(scene)]
    name = f' data-widget="{escape(mark)}"' if mark else ""
    return f'<div class="attnlab-copy"{name}><p><b>{escape(subject.title)}</b></p>{"".join(parts)}</div>'


def _answer(scene: Scene) -> str:
    found = scene.answer
    judged = {True: ", correct", False: f", wrong, it is {scene.input.truth}", None: ""}[found.correct]
    text = f"{scene.input.name} → {found.text} ({_share(found.probability)}){judged}"
    return f"<p>{escape(text)}</p>"


def _edits(question: Question) -> str:
    if not question.edits:
        return ""
    return f"<p>edits: {escape('; '.join(map(_words, question.edits)))}</p>"


def _words(edit: Edit) -> str:
    """As the page says it."""
    match edit:
        case Off():
            return f"{edit.at} off: {STAND_INS[edit.to]} instead"
        case Scale():
            return f"{edit.at}: scores times {edit.by:g}"
        case Paint():
            return f"{edit.at}: {'row' if len(edit.rows) == 1 else 'rows'} {', '.join(edit.rows)} painted"
        case Swap():
            return f"{edit.at} comes from the second input"


def _share(value: float) -> str:
    """A probability as the page writes it."""
    if 0.9995 < value < 1:
        return ">99.9%"
    return "<0.1%" if 0 < value < 0.0005 else f"{100 * value:.1f}%"


def _tokens(scene: Scene) -> str:
    rows = "".join(
        f"<tr><td>{escape(each.place)}</td><td>{escape(each.label)}</td><td>{escape(_share(each.probability))}</td>"
        f"<td>{escape(', '.join(f'{label} ({_share(p)})' for label, p in each.top[1:3]))}</td></tr>"
        for each in scene.answer.tokens[:MOST_TOKENS]
    )
    heads = "".join(f"<th>{name}</th>" for name in ("place", "token", "probability", "next likely"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _pixels(pixels: Values | None) -> str:
    if pixels is None:
        return ""
    image = np.moveaxis(pixels.array, 0, -1).astype(np.uint8)
    return _picture(image if image.shape[-1] == 3 else image[..., 0], "the input")


def _heads(scene: Scene) -> str:
    return "".join(
        _picture(_coloured(pattern), f"{path}.{head}")
        for path, values in scene.patterns.items()
        for head, pattern in enumerate(values.array)
    )


def _coloured(pattern: Float[np.ndarray, "T S"]) -> np.ndarray:
    return (255 - np.clip(pattern, 0, 1)[..., None] * (255 - _INK)).round().astype(np.uint8)


def _picture(pixels: np.ndarray, name: str) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    text = escape(name)
    image = f'<img alt="{text}" style="{_IMAGE}" src="data:image/png;base64,{data}">'
    return f'<span style="{_HEAD}">{image}{text}</span>'
