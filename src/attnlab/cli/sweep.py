"""``attnlab sweep``: a search over specs, offline."""

from shlex import quote

from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Json, Positional
from attnlab.cli.study import Cluster, Pool, Track, Workers, stopped
from attnlab.display import say
from attnlab.front.studying import sweep
from attnlab.studies.jobs import POOL


def command(
    file: Positional[str],
    *,
    count: int | None = None,
    seed: int = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    task: str | None = None,
    preset: str | None = None,
    out: str | None = None,
    pool: Pool = POOL,
    retrain: int = 0,
    retrain_seeds: int = 5,
    track: Track = (),
    json: Json = False,
) -> int:
    """Search over specs as a sweep file says: one of Weights & Biases as it stands, or our short form.

    Stopped or killed, the same command goes on where it was; a higher --count extends the search. With
    --workers 1 the same seed gives the same search.

    Example: attnlab sweep sweeps/addition-short.yaml --count 20 --retrain 2

    Args:
        file: The sweep file.
        count: Trials in all; by default what the file says, or 20.
        seed: Seed of the search and of every run in it.
        task: The task, if not the file's.
        preset: The preset that the search starts from, if not the file's.
        out: Folder of the sweep; by default runs/sweeps/NAME.
        retrain: Train this number of the best specs again with fresh seeds and compare them on test data.
        retrain_seeds: Number of fresh seeds for --retrain.
    """
    found = sweep(
        file,
        count=count,
        seed=seed,
        workers=workers,
        cluster=cluster,
        task=task,
        preset=preset,
        out=out,
        pool=pool,
        retrain=retrain,
        retrain_seeds=retrain_seeds,
        track=track,
    )
    if not found.complete:
        return stopped()
    if json:
        print_json({**found.to_json(), "retrained": found.retrained})
        return 0
    print_parts(found.tables())
    from attnlab.studies.sweeps.conduct import sweep_folder

    folder = sweep_folder(found.sweep, out)
    if found.best is not None:
        best = folder / "best.json"
        say(f"best spec: {best}; train it with: attnlab train --spec {quote(str(best))}")
    say(f"kept in {folder}: trials.json, and history, parallel and importance (svg, png, json)")
    return 0
