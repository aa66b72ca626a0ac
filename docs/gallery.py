"""The gallery: figures of the shipped runs, as the pages about them show them."""

import json
from pathlib import Path
from typing import Any

from attnlab.errors import RunError
from attnlab.figures.style import to_png
from attnlab.report.page import Figure
from attnlab.report.run_report import run_story
from attnlab.runs import open_run
from attnlab.storage import write_bytes, write_json, write_text

SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "zoo:adder": {
        "good": ("chains",),
        "heads": ("heads", "missed"),
        "maps": ("decoder-cross",),
        "reasons": ("reasons",),
    },
    "zoo:sorter": {
        "trained": ("curves",),
        "good": ("lengths",),
        "maps": ("patterns",),
        "reasons": ("reasons",),
    },
    "zoo:digit": {
        "good": ("classes", "confusion"),
        "maps": ("maps-cls", "maps-received", "maps-rollout"),
        "reasons": ("reasons",),
        "projections": ("projections",),
        "mistakes": ("reliability", "coverage", "mistakes"),
    },
    "zoo:grid": {
        "good": ("cells",),
        "maps": ("maps-digits", "maps-rollout"),
        "projections": ("projections",),
        "mistakes": ("mistakes",),
    },
}
"""For each run that may be shipped: sections of its page, and which of their figures are shown."""
LARGEST = 300_000
"""Bytes of a picture; one that would have more as SVG is a PNG."""


def draw_gallery(folder: Path) -> None:
    """Pictures of every run that is shipped, and what is said about them, in ``gallery.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    for name, sections in SHOWN.items():
        try:
            run = open_run(name)
        except RunError:
            continue  # not shipped yet
        story, shown = run_story(run), []
        for section, figures in sections.items():
            made = story.parts[section]()
            if made is not None:
                drawn = [each for each in made.figures if each.name in figures]
                shown += [_written(folder, name, section, each) for each in drawn]
        told.append({"run": name, "what": story.what, "proof": story.proof, "figures": shown})
    write_json(folder / "gallery.json", told)


def _written(folder: Path, run: str, section: str, figure: Figure) -> dict[str, Any]:
    path = folder / f"{run.partition(':')[2]}-{figure.name}.svg"
    if len(figure.svg.encode()) <= LARGEST:
        write_text(path, figure.svg)
    else:
        path = path.with_suffix(".png")
        write_bytes(path, to_png(figure.drawn))
    return {
        "file": path.name,
        "title": figure.title,
        "reading": figure.reading,
        "signs": figure.signs,
        "section": section,
    }


def gallery_pages(folder: Path) -> str:
    """The gallery as Markdown."""
    lines = []
    for run in json.loads((folder / "gallery.json").read_text(encoding="utf-8")):
        out = f"{run['run'].partition(':')[2]}.html"
        lines += [
            f"## {run['run']}",
            f"{run['what']} {run['proof']}",
            f"`attnlab report {run['run']} --out {out}`",
        ]
        for figure in run["figures"]:
            lines += [
                f"### {figure['title']}",
                f"![{figure['title']}](images/gallery/{figure['file']})",
                f"**How to read it.** {figure['reading']}",
                f"**Good and bad signs.** {figure['signs']}",
            ]
    return "\n\n".join(lines)
