"""``attnlab study``: many runs as one result with intervals."""

from pathlib import Path
from typing import Annotated, Any

import tyro

from attnlab.cli.output import print_json, print_result, print_table, print_text
from attnlab.cli.parsing import Json, Positional, parse_part
from attnlab.display import say
from attnlab.front.studying import study
from attnlab.studies import Study
from attnlab.studies.jobs import POOL
from attnlab.studies.outcome import result_folder
from attnlab.studies.study import read_catalogue
from attnlab.training.trackers import Tracker

EXIT_STOPPED = 130
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
    studies = list(read_catalogue(Path(catalogue) if catalogue else None).values())
    if json:
        print_json([_describe(each) for each in studies])
        return
    rows = [(each.name, str(len(each.variants)), str(each.seeds), each.question) for each in studies]
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
        seeds: Number of seeds, instead of the study's own.
        out: Folder for the result; by default results/NAME.
        retry: Try runs again that failed for good, such as those whose loss became infinite.
    """
    result = study(name, seeds=seeds, catalogue=catalogue).run(
        workers=workers, cluster=cluster, pool=pool, out=out, retry=retry, track=track
    )
    if not result.complete:
        return stopped()
    print_result(result, json=json)
    if not json:
        more = [f", {part}.svg" for part in ("heads", "curves", "factors") if getattr(result, part)]
        say(f"kept in {result_folder(name, out)}: study.json, study.md, study.svg{''.join(more)}")
    return 0


def stopped() -> int:
    """Say how to go on; the exit code of a study or a sweep that was asked to stop."""
    say("the same command goes on")
    return EXIT_STOPPED


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
    """Print a study's table: the saved result, or what the runs so far give, or the shipped result.

    Example: attnlab study show addition-positions --markdown

    Args:
        name: A study of 'attnlab study list'.
        seeds: Number of seeds, instead of the study's own, for a study without a saved result.
        out: Folder of the result; by default results/NAME.
        markdown: Print Markdown instead of tables.
    """
    result = study(name, seeds=seeds, catalogue=catalogue).show(out=out, pool=pool)
    if markdown and not json:
        from attnlab.tables import study as of

        print_text(of.markdown(result), end="")
    else:
        print_result(result, json=json)


def _describe(each: Study) -> dict[str, Any]:
    return {
        "study": each.name,
        "question": each.question,
        "variants": list(each.variants),
        "seeds": each.seed_list,
        "baseline": each.baseline,
        "measures": [measure.name for measure in each.measures],
    }
