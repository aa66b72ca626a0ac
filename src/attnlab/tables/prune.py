"""What ``prune`` leaves: validation examples by the number of heads kept, and what the cut gave."""

from collections.abc import Iterator

from attnlab.analysis import percent
from attnlab.analysis.prune.runs import PruningResult
from attnlab.figures.ablation import draw_pruning, pruning_data
from attnlab.results import Drawing, Part, Table


def tables(found: PruningResult) -> Iterator[Part]:
    yield Table(
        f"{found.parent}: heads removed by {found.method}, repaired by {found.repair}; "
        f"{found.valid_examples:,} validation examples",
        ("heads kept", "removed last", "exact match", "loss"),
        tuple(
            (str(point.kept), point.removed or "", percent(point.exact_match), f"{point.loss:.5f}")
            for point in found.valid_curve
        ),
    )
    before, after, test = found.cost.before, found.cost.after, found.test
    examples = f"exact match of {test.before.examples:,} test examples"
    timed = f"seconds for {found.cost.examples:,} examples"
    yield Table(
        f"{found.run}: {len(found.kept)} of {found.heads} heads kept, "
        f"{found.finetune} steps of training after",
        ("", "before", "after"),
        (
            (examples, percent(test.before.exact_match), percent(test.after.exact_match)),
            ("parameters", f"{before.parameters:,}", f"{after.parameters:,}"),
            ("multiply-adds an example", f"{before.multiply_adds:,}", f"{after.multiply_adds:,}"),
            (timed, f"{before.seconds:.4f}", f"{after.seconds:.4f}"),
        ),
    )
    yield f"kept: {', '.join(found.kept) or 'none'}"
    yield f"largest difference to the masked model's logits: {found.logit_difference:.1e}"


def figures(found: PruningResult) -> dict[str, Drawing]:
    return {"pruning": Drawing(pruning_data(found), draw_pruning)}
