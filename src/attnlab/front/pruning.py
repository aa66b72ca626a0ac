"""Pruning a run: heads are chosen, really removed, and the smaller model becomes a run of its own."""

from pathlib import Path

from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.prune.elimination import check_heads_kept, eliminate_all, load_material
from attnlab.analysis.prune.runs import begin_pruned_run, describe_pruning
from attnlab.display import Meter
from attnlab.front.loading import load
from attnlab.front.run import Run
from attnlab.front.training import RUNS
from attnlab.runs import RunFolder, numbered


def prune(
    run: Run,
    *,
    keep: int | None,
    loss: float | None,
    finetune: int,
    method: PruningMethod,
    repair: Repair,
    examples: int,
    out: str | Path,
) -> Run:
    """The run without heads, trained to its end and described, unless its training is interrupted."""
    total = check_heads_kept(run.model, run.name, keep)
    material = load_material(run, examples=examples)
    with Meter("removing heads", total) as meter:
        elimination = eliminate_all(material, method=method, repair=repair, progress=meter.update)
    kept = keep if keep is not None else elimination.fewest(loss or 0.0)
    pruned = elimination.pruned(kept)
    name = f"{run.name.removeprefix('zoo:')}-pruned-{kept}"

    def begin(path: Path) -> RunFolder:
        return begin_pruned_run(run, pruned, path, finetune=finetune)

    begun = begin(Path(out)) if out else numbered(RUNS, name, begin)
    child = load(begun, device=run.device).resume()
    if child.summary() is not None:
        describe_pruning(run, child, elimination, pruned, finetune=finetune)
    return child
