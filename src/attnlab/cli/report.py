"""``attnlab report``: one self-contained page about a run or a study."""

from pathlib import Path
from shlex import quote

from attnlab.analysis.choices import SAMPLES
from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import Positional
from attnlab.display import say
from attnlab.errors import RunError
from attnlab.front.loading import load
from attnlab.front.run import PAGE
from attnlab.storage import check_out
from attnlab.studies.outcome import FILE, RESULTS, SHIPPED, read_results
from attnlab.studies.study import read_catalogue


def command(
    name: Positional[str],
    *,
    out: str = "",
    samples: int = SAMPLES,
    sections: tuple[str, ...] = (),
    json: bool = False,
) -> None:
    """Write one page about a run or a study: how it trained, how good it is, its heads, maps and mistakes.

    The page is one file that needs no network; its figures can be saved as SVG, their numbers as JSON.

    Example: attnlab report zoo:adder --out adder.html

    Example: attnlab report results/addition-positions

    Args:
        name: A run folder, a shipped run such as zoo:adder, the folder of a study's result, or the name of
            a study whose result lies in results.
        out: File to write, which ends in .html; by default report.html in the folder, or here for what is
            shipped.
        samples: Examples on which heads and projections of a run are measured.
        sections: Only these of a run: trained, doctor, good, heads, maps, reasons, projections, mistakes.
        json: Print where the page is as JSON.
    """
    check_out(out, ".html")
    folder = _study_folder(name)
    if folder is None:
        opened = load(name)
        path = opened.report(out, samples=samples, sections=sections)
        what = {"run": opened.name}
    else:
        result, path = read_results(folder), Path(out) if out else _page(folder)
        assert result is not None
        words = f"attnlab report {quote(str(folder))} --out {quote(str(path))}"
        from attnlab.report.study_report import write_study_report

        write_study_report(result, path, command=words)
        what = {"study": folder.resolve().name}
    if json:
        print_json({**what, "report": str(path), "bytes": path.stat().st_size})
    else:
        print_text(str(path))
        say("open it in a browser; it needs no network")


def _page(folder: Path) -> Path:
    """In the folder of the result; for one that comes with attnlab, here."""
    return Path(f"{folder.name}.html") if folder.parent == SHIPPED else folder / PAGE


def _study_folder(name: str) -> Path | None:
    """Where the result of a study lies; None if ``name`` is none."""
    for folder in (Path(name), RESULTS / name, SHIPPED / name):
        if (folder / FILE).is_file():
            return folder
    if name in read_catalogue() and not Path(name).exists():
        raise RunError(f"study {name} has no result in results/{name} yet; use: attnlab study run {name}")
    return None
