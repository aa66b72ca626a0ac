"""``attnlab prune``: choose heads that can go together, and really remove them."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from attnlab.analysis import percent
from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.cli.drawing import write_figures
from attnlab.cli.output import print_table, tell
from attnlab.cli.parsing import Json, RunName
from attnlab.cli.train import stopped
from attnlab.display import Meter, say
from attnlab.errors import InputError
from attnlab.front.run import load
from attnlab.runs import open_run, unused_path

if TYPE_CHECKING:
    from attnlab.analysis.prune.runs import PruningResult


def command(
    run: RunName,
    *,
    keep: int | None = None,
    loss: float | None = None,
    finetune: int = 0,
    method: PruningMethod = "greedy",
    repair: Repair = "refit",
    examples: int = 1000,
    out: str = "",
    json: Json = False,
) -> int:
    """Remove heads that are chosen jointly, and keep the smaller model as a run of its own.

    Heads are chosen by validation examples and really removed: their weights are gone. The smaller model's
    logits are compared with those of the masked model each time. Test examples are scored once, at the end.

    Example: attnlab prune zoo:adder --keep 5

    Args:
        keep: How many heads to keep.
        loss: Instead: keep the fewest heads with which exact match falls by less than this, such as 0.01.
        finetune: Steps of training after heads are removed.
        method: greedy takes out one head after the other and judges the rest anew; gates learns which to
            close.
        repair: What makes up for removed heads: refit chooses the maps behind all sublayers anew by least
            squares, optimal and mean put a constant in a head's place and change nothing else.
        examples: Training examples to fit by, and validation examples to choose by.
        out: Run folder to create; by default runs/NAME-pruned-HEADS, numbered if taken.
    """
    parent = open_run(run)
    if finetune < 0:
        raise InputError(f"--finetune is {finetune}; it must be at least 0")
    from attnlab.analysis.prune.elimination import check_choice, eliminate_all, load_material
    from attnlab.analysis.prune.runs import begin_pruned_run, describe_pruning

    total = check_choice(parent.model, parent.name, keep=keep, loss=loss)
    material = load_material(parent, examples=examples)
    with Meter("removing heads", total) as meter:
        elimination = eliminate_all(material, method=method, repair=repair, progress=meter.update)
    kept = keep if keep is not None else elimination.fewest(loss or 0.0)
    pruned = elimination.pruned(kept)
    name = f"{parent.name.removeprefix('zoo:')}-pruned-{kept}"
    path = Path(out) if out else unused_path(Path("runs"), name)
    child = load(begin_pruned_run(parent, pruned, path, finetune=finetune))
    if child.resume().summary() is None:
        return stopped(child)
    found = describe_pruning(parent, child, elimination, pruned, finetune=finetune)
    tell(found, show, json=json)
    from attnlab.figures.ablation import draw_pruning, pruning_data

    write_figures(child.file("figures"), found, {"pruning": (pruning_data, draw_pruning)})
    say(f"next: attnlab evaluate {quote(str(child.path))}")
    return 0


def show(found: "PruningResult") -> None:
    print_table(
        f"{found.parent}: heads removed by {found.method}, repaired by {found.repair}; "
        f"{found.valid_examples:,} validation examples",
        ("heads kept", "went last", "exact match", "loss"),
        [
            (str(point.kept), point.removed or "", percent(point.exact_match), f"{point.loss:.5f}")
            for point in found.valid_curve
        ],
    )
    before, after, test = found.cost.before, found.cost.after, found.test
    examples = f"exact match of {test.before.examples:,} test examples"
    timed = f"seconds for {found.cost.examples:,} examples"
    print_table(
        f"{found.run}: {len(found.kept)} of {found.heads} heads kept, "
        f"{found.finetune} steps of training after",
        ("", "before", "after"),
        [
            (examples, percent(test.before.exact_match), percent(test.after.exact_match)),
            ("parameters", f"{before.parameters:,}", f"{after.parameters:,}"),
            ("multiply-adds an example", f"{before.multiply_adds:,}", f"{after.multiply_adds:,}"),
            (timed, f"{before.seconds:.4f}", f"{after.seconds:.4f}"),
        ],
    )
    print(f"kept: {', '.join(found.kept) or 'none'}")
    print(f"largest difference to the masked model's logits: {found.logit_difference:.1e}")
