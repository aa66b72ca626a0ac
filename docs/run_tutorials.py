"""Executes the notebooks of docs/tutorials and keeps their outputs: ``docs/run_tutorials.py [FILE ...]``.

Notebooks are their own source: edit them in Jupyter or VS Code, then let this script fill in the outputs.
What differs between two executions without a meaning is not kept: progress bars, seconds, when a cell was
executed. Pictures are kept with few colours, which makes them a third as large.
"""

import base64
import io
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

TUTORIALS = Path(__file__).parent / "tutorials"
COLOURS = 64
TIMEOUT = 600
"""Seconds for a cell."""

_SECONDS = re.compile(r"(?: in|  +)(?: ?\d+ min)? ?\d+ s\b")  # behind an epoch, and in the card of a run
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook with fresh outputs, made by a kernel of its own in a folder."""
    made = nbformat.from_dict(notebook)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(made, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()
    return cleaned(made)


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """The notebook without what two executions need not have in common."""
    made: NotebookNode = nbformat.from_dict(notebook)  # type: ignore[no-untyped-call]
    made.metadata = nbformat.from_dict({"kernelspec": _KERNEL})  # type: ignore[no-untyped-call]
    for cell in made.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [each for each in map(_kept, _joined(cell.outputs)) if each is not None]
    return made


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Without empty displays, such as finished progress bars, which part what was printed."""
    joined: list[NotebookNode] = []
    for each in outputs:
        if each.output_type == "display_data" and not each.data.get("text/html", "-"):
            continue
        if each.output_type == "stream" and joined and joined[-1].get("name") == each.name:
            joined[-1].text += each.text
        else:
            joined.append(each)
    return joined


def _kept(output: NotebookNode) -> NotebookNode | None:
    """Of several forms of one output the richest."""
    if output.output_type == "stream":
        output.text = _SECONDS.sub("", output.text)
        return output if output.name == "stdout" else None
    if output.output_type == "error":
        return output
    data = output.data
    for kind in ("image/png", "text/html", "text/plain"):
        if kind in data:
            value = _few_colours(data[kind]) if kind == "image/png" else _SECONDS.sub("", data[kind])
            output.data = {kind: value}
            break
    output.metadata = {kind: value for kind, value in output.metadata.items() if kind in output.data}
    return output


def _few_colours(encoded: str) -> str:
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    if image.mode == "P":
        return encoded
    buffer = io.BytesIO()
    image.convert("RGB").quantize(COLOURS).save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def main() -> None:
    for path in [Path(each) for each in sys.argv[1:]] or sorted(TUTORIALS.glob("*.ipynb")):
        print(path.name, flush=True)
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(notebook, Path(folder)), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
