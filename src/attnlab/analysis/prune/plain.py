"""Pruning models without a task: those of others, whose weights are cut where they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from attnlab.analysis.ablate.baselines import zero_baseline
from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.evaluate import proportion
from attnlab.analysis.prune.cutting import Cut, Material, Pruned, Surgery, cut
from attnlab.analysis.prune.elimination import Elimination, eliminate_all
from attnlab.analysis.prune.runs import BeforeAndAfter, PruningResult, Scored, compare_costs
from attnlab.analysis.subjects import Subject, batch_size, score
from attnlab.errors import InputError, LabError
from attnlab.foreign.model import Wrapped
from attnlab.model import Model
from attnlab.models.surgery import Constants
from attnlab.progress import Progress, silent
from attnlab.sets import Examples

FEW = 2  # examples on which it is tried whether heads can be cut at all


@final
@dataclass(frozen=True)
class WrappedSurgery(Surgery):
    """Of a copy of somebody's module."""

    def cut(self, current: Pruned, double: Model, removed: Sequence[str], constants: Constants) -> Cut:
        assert isinstance(current.model, Wrapped)
        assert isinstance(double, Wrapped)
        weights = double.cut(removed, constants).state_dict()
        return Cut(current.model.cut(removed, constants), weights)


def prune_wrapped(
    subject: Subject,
    training: Examples,
    *,
    keep: int | None,
    loss: float | None,
    method: PruningMethod,
    repair: Repair,
    progress: Progress = silent,
) -> tuple[Elimination, Pruned]:
    """Which heads go in which order, and the model without those that need not stay."""
    if repair == "refit":
        raise InputError(
            "repair is 'refit', which refits the linear maps of attnlab's own models; use 'mean' or "
            "'optimal', which put a constant in the place of a head"
        )
    material = Material(WrappedSurgery(), subject, training)
    require_cut(material)
    found = eliminate_all(material, method=method, repair=repair, keep=keep or 0, progress=progress)
    return found, found.pruned(found.fewest(loss or 0.0) if keep is None else keep)


def require_cut(material: Material) -> None:
    """Refuse a model whose heads cannot be cut, before any work: the first of every attention is, once."""
    model, subject = material.model, material.subject
    firsts = [site.head_names[0] for site in model.sites() if site.heads > 1]
    few = Subject(model, subject.examples[slice(0, FEW)], {}, subject.places)
    try:
        cut(Material(material.surgery, few, material.train), firsts, zero_baseline(model))
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise LabError(
            f"the heads of {model.called} cannot be cut, since it does not run with fewer ({reason}); take "
            "heads out by without(), which needs no weights"
        ) from error


def describe_wrapped(found: Elimination, pruned: Pruned, test: Examples) -> PruningResult:
    """What was done and what it cost."""
    material, model = found.material, found.material.model
    scores = (Scored(*proportion(score(each, test).exact)) for each in (model, pruned.model))
    kept = found.kept(pruned)
    return PruningResult(
        run=f"{model.called}-pruned-{len(kept)}",
        parent=model.called,
        method=found.method,
        repair=found.repair,
        finetune=0,
        kept=kept,
        removed=list(pruned.removed),
        heads=found.heads,
        logit_difference=pruned.difference,
        valid_curve=found.curve(),
        valid_examples=len(material.subject.examples),
        test=BeforeAndAfter(*scores),
        cost=compare_costs(model, pruned.model, test[slice(0, batch_size(model, test))]),
    )
