"""``attnlab study``: many runs as one result with intervals."""

import importlib
from dataclasses import replace
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import Annotated, Any

import tyro

from attnlab.cli.board import Board
from attnlab.cli.output import print_json, print_table, tell
from attnlab.cli.parsing import Json, Positional, parse_part
from attnlab.display import say, stop_on_signal
from attnlab.errors import RunError
from attnlab.report.study_results import read_results, write_results
from attnlab.specs import require
from attnlab.studies import Study
from attnlab.studies.jobs import run_name
from attnlab.studies.outcome import StudyResult, collect
from attnlab.studies.running import check_pool, open_executor, open_jobs, run_jobs
from attnlab.studies.study import find_study, read_catalogue
from attnlab.studies.tables import markdown, notes, tables
from attnlab.training.trackers import Tracker, load_tracker

EXIT_STOPPED = 130
POOL = "runs/pool"
Pool = Annotated[str, tyro.conf.arg(help="Folder of runs that studies and sweeps share.")]
Workers = Annotated[int | None, tyro.conf.arg(help="Worker processes; by default one a core.")]
Cluster = Annotated[
    str | None, tyro.conf.arg(help="Address of a Ray cluster, or auto for the one on this machine.")
]
Track = Annotated[
    tuple[Tracker, ...], tyro.conf.arg(help="Send the metrics of new runs to trackers as well.")
]
Catalogue = Annotated[str | None, tyro.conf.arg(help="A Python file whose STUDIES add to ours.")]

USAGE = """usage: attnlab study list                 the studies there are
       attnlab study run NAME             train what is missing, then print and keep the table
       attnlab study show NAME            the table again

example: attnlab study run addition-order --seeds 3
all options: attnlab study run --help"""


def main(arguments: list[str]) -> int | None:
    return parse_part(
        {"list": command_list, "run": command_run, "show": command_show},
        arguments,
        command="study",
        usage=USAGE,
    )


def command_list(*, catalogue: Catalogue = None, json: Json = False) -> None:
    """List the studies there are.

    Example: attnlab study list
    """
    studies = list(_studies(catalogue).values())
    if json:
        print_json([_describe(study) for study in studies])
        return
    rows = [(study.name, str(len(study.variants)), str(study.seeds), study.question) for study in studies]
    print_table("studies", ("study", "variants", "seeds", "question"), rows)


def command_run(
    name: Positional[str],
    *,
    seeds: int | None = None,
    workers: Workers = None,
    cluster: Cluster = None,
    out: str | None = None,
    pool: Pool = POOL,
    catalogue: Catalogue = None,
    retry: bool = False,
    track: Track = (),
    json: Json = False,
) -> int:
    """Train and analyse every run that is not finished yet; print the table and keep it in results/NAME.

    Stopped or killed, the same command goes on where it was.

    Example: attnlab study run addition-order --seeds 3

    Args:
        name: A study of 'attnlab study list'.
        seeds: So many seeds instead of the study's own number.
        out: Folder for the result; by default results/NAME.
        retry: Try runs again that failed for good, such as those whose loss became infinite.
    """
    study = _chosen(name, seeds, catalogue)
    folder = Path(out) if out else Path("results") / study.name
    read_results(folder)  # refuses what another version wrote, before any work
    check_trackers(track)
    result = run_study(study, Path(pool), workers=workers, cluster=cluster, retry=retry, track=track)
    if result is None:
        return EXIT_STOPPED
    write_results(result, folder)
    if json:
        print_json(result.to_json())
    else:
        show(result)
        more = [f", {part}.svg" for part in ("heads", "curves", "factors") if getattr(result, part)]
        say(f"kept in {folder}: study.json, study.md, study.svg{''.join(more)}")
    return 0


def command_show(
    name: Positional[str],
    *,
    seeds: int | None = None,
    out: str | None = None,
    pool: Pool = POOL,
    catalogue: Catalogue = None,
    markdown: bool = False,
    json: Json = False,
) -> None:
    """Print a study's table: the result that is kept, or what the runs so far give.

    Example: attnlab study show addition-positions --markdown

    Args:
        name: A study of 'attnlab study list'.
        seeds: So many seeds instead of the study's own number, for a study without a kept result.
        out: Folder of the result; by default results/NAME.
        markdown: Print Markdown instead of tables.
    """
    study = _chosen(name, seeds, catalogue)
    result = read_results(Path(out) if out else Path("results") / study.name)
    if result is None:
        result = collect(study, Path(pool), command=_command(study))
        if not result.runs.finished:
            raise RunError(f"study {name} has no result yet; get one with: attnlab study run {name}")
    elif {each.name: each.runs for each in result.variants} != _runs_of(study, len(result.seeds)):
        say(f"the catalogue's {name} has other specs by now; this is what was kept")
    tell(result, _show_markdown if markdown else show, json=json)


def _show_markdown(result: StudyResult) -> None:
    print(markdown(result), end="")


def _prepare() -> None:
    """Import what the result will need while the workers are at work: nobody waits for it then."""
    importlib.import_module("scipy.stats")
    importlib.import_module("attnlab.figures.studies")


def run_study(
    study: Study,
    pool: Path,
    *,
    workers: int | None,
    cluster: str | None,
    retry: bool = False,
    track: tuple[Tracker, ...] = (),
) -> StudyResult | None:
    """Run what is missing, with live progress; the result, or None if it was stopped before the end."""
    require(workers is None or workers >= 1, "--workers", workers, "at least 1")
    check_pool(pool)
    jobs = open_jobs(study, pool, retry=retry, tracks=track)
    titles = {run_name(spec): f"{variant}, seed {seed}" for variant, seed, spec in study.specs()}
    board = Board(study.name, len(titles), len(titles) - len(jobs))
    for job, title in titles.items():
        board.name(job, title)
    if jobs:
        with (
            stop_on_signal() as stopping,
            open_executor(pool, workers=workers, cluster=cluster) as executor,
        ):
            say(f"{study.name}: {len(jobs)} of {len(titles)} runs to do")
            Thread(target=_prepare, daemon=True).start()
            with board:
                run_jobs(jobs, pool, executor, handle=board.see, stopping=stopping)
    result = collect(study, pool, command=_command(study))
    if not result.complete:
        say(
            f"stopped and saved, {result.runs.finished} of {result.runs.wanted} runs finished; "
            "the same command goes on"
        )
        return None
    return result


def show(result: StudyResult) -> None:
    print(f"{result.study}: {result.question}")
    for table in tables(result):
        print_table(table.title, table.columns, table.rows)
    for note in notes(result):
        print(note)


def check_trackers(track: tuple[Tracker, ...]) -> None:
    """Refuse a tracker that is not installed, before any work."""
    for name in track:
        load_tracker(name)


def _chosen(name: str, seeds: int | None, catalogue: str | None) -> Study:
    study = find_study(name, _studies(catalogue))
    return study if seeds is None else replace(study, seeds=seeds)


def _studies(catalogue: str | None) -> dict[str, Study]:
    return read_catalogue(Path(catalogue) if catalogue else None)


def _command(study: Study) -> str:
    return f"attnlab study run {quote(study.name)} --seeds {study.seeds}"


def _runs_of(study: Study, seeds: int) -> dict[str, list[str]]:
    """Names of the runs of each variant with so many seeds."""
    study = replace(study, seeds=seeds)
    return {name: [run_name(study.spec(name, seed)) for seed in study.seed_list] for name in study.variants}


def _describe(study: Study) -> dict[str, Any]:
    return {
        "study": study.name,
        "question": study.question,
        "variants": list(study.variants),
        "seeds": study.seed_list,
        "baseline": study.baseline,
        "measures": [measure.name for measure in study.measures],
    }
