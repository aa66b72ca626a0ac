"""Which heads go: the order, the curve of what is left, and the number of heads to keep.

Heads are chosen by validation examples, constants and maps are fitted on training examples, and test
examples are left for the figure at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from attnlab.analysis.ablate.baselines import Baseline, mean_baseline
from attnlab.analysis.ablate.constants import optimal_baseline
from attnlab.analysis.ablate.without import evaluate_without
from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.prune.elimination import (
    Material,
    Pruned,
    cut,
    eliminate,
    eliminate_refitted,
    refitted,
)
from attnlab.analysis.prune.gates import gate_order
from attnlab.analysis.subjects import Answers, answers_to, load_subject, require_attention
from attnlab.errors import InputError, LabError
from attnlab.models import heads
from attnlab.notation import Head
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_model

MODELS = 64  # pruned models that are held in memory at most


@dataclass(frozen=True)
class CurvePoint:
    """The model with so many heads kept, and the head that went last."""

    kept: int
    removed: str | None
    exact_match: float
    loss: float


@dataclass(frozen=True)
class Elimination:
    """Heads in the order in which they go, and how well the model answers without the first n of them."""

    material: Material
    method: PruningMethod
    repair: Repair
    order: list[Head]
    answers: list[Answers]
    """Of n = 0, the whole model, up to all heads; of validation examples."""
    baseline: Baseline
    models: dict[int, Pruned]

    @property
    def heads(self) -> int:
        """Heads of the whole model."""
        return len(self.order)

    def pruned(self, kept: int) -> Pruned:
        """The model that keeps so many heads."""
        count = self.heads - kept
        if count not in self.models:
            found = cut(self.material, self.order[:count], self.baseline)
            self.models[count] = refitted(self.material, found) if self.repair == "refit" else found
        return self.models[count]

    def curve(self) -> list[CurvePoint]:
        """Exact match and loss by the number of heads kept."""
        return [
            CurvePoint(
                kept=self.heads - count,
                removed=str(self.order[count - 1]) if count else None,
                exact_match=float(answers.exact.double().mean()),
                loss=float(answers.loss.double().mean()),
            )
            for count, answers in enumerate(self.answers)
        ]

    def fewest(self, loss: float) -> int:
        """The fewest heads with which exact match falls by less than ``loss``, as does with any more."""
        points = self.curve()
        allowed = points[0].exact_match - loss
        for point in points:
            if point.exact_match <= allowed and point.kept < self.heads:
                return point.kept + 1
        return 0


def load_material(run: Run, *, examples: int) -> Material:
    """What elimination needs of a run."""
    subject = load_subject(run, split="valid", count=examples)
    train = load_subject(run, split="train", count=examples).examples
    spec = run.spec()
    return Material(
        spec.model, subject, train, spec.task.vocabulary, spec.task.tokens, spec.task.cell_shape
    )


def eliminate_all(
    material: Material,
    *,
    method: PruningMethod = "greedy",
    repair: Repair = "refit",
    progress: Progress = silent,
) -> Elimination:
    """The order of all heads, and what is left without them; ``progress`` counts heads and gate steps."""
    total = len(heads(material.model))
    whole = answers_to(material.subject)
    constants = _constants(material, repair)
    order: list[Head] = []
    answers, models = [whole], dict[int, Pruned]()
    steps: Iterator[tuple[Head, Answers, Pruned | None]]
    if method == "gates":
        steps = _by_gates(material, repair, constants, progress)
    elif repair == "refit":
        steps = ((each.removed[-1], found, each) for each, found in eliminate_refitted(material))
    else:
        steps = ((head, found, None) for head, found in eliminate(material, constants))
    for head, found, pruned in steps:
        order.append(head)
        answers.append(found)
        if pruned is not None and len(models) < MODELS:
            models[len(order)] = pruned
        progress(len(order), total)
    return Elimination(material, method, repair, order, answers, constants, models)


def _by_gates(
    material: Material, repair: Repair, constants: Baseline, progress: Progress
) -> Iterator[tuple[Head, Answers, Pruned | None]]:
    order = gate_order(material.model, material.train, constants, progress=progress)
    sets = [frozenset(map(str, order[:count])) for count in range(1, len(order) + 1)]
    if repair != "refit":
        found = evaluate_without(material.subject, sets, constants)
        yield from ((head, found[gone], None) for head, gone in zip(order, sets, strict=True))
        return
    for count, head in enumerate(order, 1):
        pruned = refitted(material, cut(material, order[:count], constants))
        yield head, answers_to(material.subject, pruned.model), pruned


def _constants(material: Material, repair: Repair) -> Baseline:
    if repair == "optimal":
        return optimal_baseline(material.model, material.train)
    return mean_baseline(material.model, material.train, by_place=False)


def check_choice(run: Run, *, keep: int | None, loss: float | None) -> int:
    """How many heads there are; a number that the model does not have is refused before work begins."""
    if (keep is None) == (loss is None):
        raise InputError("say either how many heads to keep (--keep 5) or what may be lost (--loss 0.01)")
    if loss is not None and not 0 < loss < 1:
        raise InputError(
            f"--loss is {loss}; it must lie between 0 and 1, as 0.01 for one point in a hundred"
        )
    model = load_model(run)
    require_attention(model)
    total = len(heads(model))
    if keep is not None and not 0 <= keep < total:
        raise LabError(f"--keep is {keep}, but {run.name} has {total} heads; keep 0 to {total - 1} of them")
    return total
