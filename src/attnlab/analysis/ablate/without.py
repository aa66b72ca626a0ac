"""Answers of a model without heads, for many sets of heads, with little computed twice.

What a pass computes before the first attention whose heads differ from those of the pass before it, this
pass need not compute again: z and the residual stream up to there are supplied. The sets are walked as the
branches of a tree, first by the heads left out of the first attention that is computed, then by those of
the second, and so on; so the first layers are computed once for all sets that agree on them.

Greedy decoding gets exactly those examples wholly right that teacher forcing does, so one pass is all that
a set needs. Passes are not made wider by several sets at once: from a few dozen examples on, time goes
with rows.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch

from attnlab.analysis.ablate.baselines import Baseline, check_heads, mask_without, run_pass, until
from attnlab.analysis.parallel import Tick, in_parallel
from attnlab.analysis.subjects import BATCH, Answers, Subject, join, judge
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.progress import Progress, silent

Heads = frozenset[str]
"""Heads that are taken out together."""


def evaluate_without(
    subject: Subject, sets: Iterable[Heads], baseline: Baseline, *, progress: Progress = silent
) -> dict[Heads, Answers]:
    """What the model answers without each of the ``sets``; ``progress`` is told of passes."""
    wanted = list(dict.fromkeys(sets))
    check_heads(subject.model, sorted(frozenset[str]().union(*wanted)))
    size = min(BATCH, -(-len(subject.examples) // torch.get_num_threads()))
    parts = [slice(start, start + size) for start in range(0, len(subject.examples), size)]

    def work(model: Model, part: slice, tick: Tick) -> dict[Heads, Answers]:
        return dict(walk(model, subject.examples[part], wanted, baseline.rows(part), tick))

    steps = len(parts) * len(wanted)
    found = in_parallel(subject.model, parts, work, steps=steps, progress=progress)
    return {removed: join([part[removed] for part in found]) for removed in wanted}


@torch.inference_mode()
def walk(
    model: Model, examples: Examples, sets: Sequence[Heads], baseline: Baseline, tick: Tick
) -> Iterator[tuple[Heads, Answers]]:
    """``evaluate_without`` for one batch, set by set in the order of the tree."""
    logits, values = run_pass(model, examples, {}, {}, baseline)
    paths = (name.removesuffix(".z") for name in values if name.endswith(".z"))
    order = [path for path in paths if path in attentions(model)]
    before: list[list[str]] = [[] for _ in order]
    for branch, removed in sorted((_branch(removed, order), removed) for removed in sets):
        differing = [path for path, a, b in zip(order, before, branch, strict=True) if a != b]
        if differing:
            mask = {path: kept for path, kept in mask_without(model, removed).items() if path in order}
            logits, values = run_pass(model, examples, until(values, differing[0]), mask, baseline)
            before = branch
        yield removed, judge(logits, examples.targets)
        tick()


def _branch(removed: Heads, order: list[str]) -> list[list[str]]:
    """Which heads are left out of each attention."""
    return [sorted(head for head in removed if head.rpartition(".")[0] == path) for path in order]
