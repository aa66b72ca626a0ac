"""Choosing heads jointly: one is eliminated after the other, and the rest are judged anew each time.

Without refitting, every head that is left is a candidate. With refitting, a candidate has to be taken out,
the rest fitted and the result tried, which takes seconds; so each attention offers one, the head for which
the others can best make up. With the covariance C of an attention's z over training tokens and the rows W_h
of its output, leaving out head h and choosing the other rows anew raises the squared error of the output by

    trace(W_h^T [(C^-1)_hh]^-1 W_h)

(Hassibi and Stork, 1992, for a block of weights), and the head with the smallest rise is offered.

The other way is by learned gates, while the weights stay as they are. Every head's z is multiplied by a
gate in [0, 1] that is drawn anew for each example from a hard concrete distribution with one parameter a
(Louizos, Welling and Kingma, 2018; for heads Voita et al., 2019):

    s    = sigmoid((log u - log(1 - u) + a) / beta),    u uniform in (0, 1)
    gate = min(1, max(0, s (zeta - gamma) + gamma)),    so that 0 and 1 themselves are drawn

The parameters minimise the loss plus a price times the expected number of open gates. The price rises
while they are learned, from nothing to more than any head is worth; so the gates close one after the other,
and the order in which they close is the order in which heads can go.

Heads are chosen by validation examples, constants and maps are fitted on training examples, and test
examples are left for the figure at the end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import (
    Baseline,
    head_names,
    masked,
    mean_baseline,
    optimal_baseline,
    recorded_z,
)
from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.prune.cutting import Material, OwnSurgery, Pruned, cut
from attnlab.analysis.prune.refit import Streams, refit, streams
from attnlab.analysis.subjects import Answers, load_subject, require_attention, score
from attnlab.attention import Attention
from attnlab.devices import device_of
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.models.surgery import own_attentions
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.taps import record

MODELS = 64  # pruned models that are held in memory at most

BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1
STEPS, ROWS, RATE = 400, 100, 0.1  # of learning gates; rows are examples a step
FIRST = 3.0  # gates start nearly open
PRICES = (1e-4, 1.0)  # of one open gate, in units of the loss: first and last


def load_material(run: RunFolder, *, examples: int) -> Material:
    """What elimination needs of a run; it computes on the CPU, in float64 where that matters."""
    run = run.on_cpu()
    subject = load_subject(run, split="valid", count=examples)
    train = load_subject(run, split="train", count=examples).examples
    return Material(OwnSurgery(run.spec()), subject, train)


def check_heads_kept(model: Model, name: str, keep: int | None) -> int:
    """How many heads there are; a number that the model does not have is refused before work begins."""
    require_attention(model)
    total = len(head_names(model))
    if keep is not None and not 0 <= keep < total:
        raise LabError(f"keep is {keep}, but {name} has {total} heads; keep 0 to {total - 1} of them")
    return total


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
    order: list[str]
    answers: list[Answers]
    """Of n = 0, the whole model, up to all heads that went; of validation examples."""
    baseline: Baseline
    models: dict[int, Pruned]

    @property
    def heads(self) -> int:
        """Heads of the whole model."""
        return len(head_names(self.material.model))

    def kept(self, pruned: Pruned) -> list[str]:
        """The heads that are left, those that would go last first."""
        staying = [head for head in head_names(self.material.model) if head not in self.order]
        return [*staying, *self.order[len(pruned.removed) :][::-1]]

    def pruned(self, kept: int) -> Pruned:
        """The model that keeps so many heads."""
        count = self.heads - kept
        if count not in self.models:
            self.models[count] = cut(self.material, self.order[:count], self.baseline)
            if self.repair == "refit":
                _refit(self.material, self.models[count])
        return self.models[count]

    def curve(self) -> list[CurvePoint]:
        """Exact match and loss by the number of heads kept."""
        removed = [None, *self.order]
        return [
            CurvePoint(self.heads - count, last, answers.exact_match, answers.mean_loss)
            for count, (last, answers) in enumerate(zip(removed, self.answers, strict=True))
        ]

    def fewest(self, loss: float) -> int:
        """The fewest heads with which exact match falls by less than ``loss``, as does with any more."""
        whole, *fewer = self.curve()
        fallen = (point.kept + 1 for point in fewer if point.exact_match <= whole.exact_match - loss)
        return next(fallen, 0)


Step = tuple[str, Answers, Pruned | None]
"""The head that goes, the answers without it and all before it, and the model, if it was made."""


def eliminate_all(
    material: Material,
    *,
    method: PruningMethod = "greedy",
    repair: Repair = "refit",
    keep: int = 0,
    progress: Progress = silent,
) -> Elimination:
    """The order in which heads go until so many are left as to ``keep``, and what is left without them;
    ``progress`` counts heads and gate steps.
    """
    total = len(head_names(material.model)) - keep
    answers = [score(material.model, material.subject.examples)]
    if repair == "optimal":
        constants = optimal_baseline(material.model, material.train)
    else:
        constants = mean_baseline(material.model, material.train, by_place=False)
    if method == "gates":
        steps = _by_gates(material, repair, constants, total, progress)
    else:
        steps = eliminate_refitted(material) if repair == "refit" else _eliminate(material, constants)
    order, models = list[str](), dict[int, Pruned]()
    for head, found, pruned in islice(steps, total):
        order.append(head)
        answers.append(found)
        if pruned is not None and len(models) < MODELS:
            models[len(order)] = pruned
        progress(len(order), total)
    return Elimination(material, method, repair, order, answers, constants, models)


def _by_gates(
    material: Material, repair: Repair, constants: Baseline, total: int, progress: Progress
) -> Iterator[Step]:
    order = gate_order(material.model, material.train, constants, progress=progress)[:total]
    sets = [frozenset(order[:count]) for count in range(1, len(order) + 1)]
    if repair != "refit":
        found = evaluate_without(material.subject, sets, constants)
        yield from ((head, found[gone], None) for head, gone in zip(order, sets, strict=True))
        return
    for count, head in enumerate(order, 1):
        pruned = cut(material, order[:count], constants)
        _refit(material, pruned)
        yield head, score(pruned.model, material.subject.examples), pruned


def gate_order(
    model: Model, examples: Examples, baseline: Baseline, *, progress: Progress = silent
) -> list[str]:
    """All heads in the order in which their gates close; ``examples`` should be training examples."""
    counts = {path: attention.heads for path, attention in attentions(model).items()}
    chance = torch.Generator().manual_seed(0)
    opening = torch.full((sum(counts.values()),), FIRST, requires_grad=True)
    optimiser = torch.optim.Adam([opening], lr=RATE)
    closed_at = torch.zeros(len(opening))
    for step in range(STEPS):
        part = examples[torch.randint(len(examples), (ROWS,), generator=chance)].to(device_of(model))
        u = torch.rand(ROWS, len(opening), generator=chance).clamp(1e-6, 1 - 1e-6)
        gates = _gates(torch.sigmoid((u.log() - (1 - u).log() + opening) / BETA))
        mask = dict(zip(counts, torch.split(gates, list(counts.values()), dim=1), strict=True))
        with masked(model, mask, baseline):
            logits = model(*part.inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), part.targets.flatten())
        price = PRICES[0] * (PRICES[1] / PRICES[0]) ** (step / STEPS)
        chance_open = torch.sigmoid(opening - BETA * math.log(-GAMMA / ZETA))  # that a gate is not 0
        (opening.grad,) = torch.autograd.grad(loss.cpu() + price * chance_open.sum(), opening)
        optimiser.step()
        with torch.no_grad():
            closed_at[_gates(torch.sigmoid(opening)) >= 0.5] = step + 1  # the gate without chance
        progress(step + 1, STEPS)
    # Of those that closed at the same step, or never, the less open one goes first.
    order = sorted(range(len(opening)), key=lambda n: (float(closed_at[n]), float(opening[n].detach())))
    names = head_names(model)
    return [names[n] for n in order]


def _gates(s: Tensor) -> Tensor:
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


def _eliminate(material: Material, baseline: Baseline) -> Iterator[Step]:
    """The one goes next without which most examples are right, and of several such the loss is lowest."""
    gone: list[str] = []
    left = head_names(material.model)
    while left:
        sets = {head: frozenset((*gone, head)) for head in left}
        answers = evaluate_without(material.subject, sets.values(), baseline)
        best = min(left, key=lambda head: _badness(answers[sets[head]]))
        gone.append(best)
        left.remove(best)
        yield best, answers[sets[best]], None


def eliminate_refitted(material: Material) -> Iterator[Step]:
    """Models with one head less each, refitted."""
    wanted = streams(material.model, material.train)
    current = None
    for _ in head_names(material.model):
        with one_thread():  # products are small, and the halves of each would wait for each other
            current, answers = _next_refitted(material, current, wanted)
        yield current.removed[-1], answers, current


def _next_refitted(material: Material, current: Pruned | None, wanted: Streams) -> tuple[Pruned, Answers]:
    """The best model with one head less than ``current``: each attention offers one head."""
    model = material.model if current is None else current.model
    with torch.no_grad(), record(model, "*_residual.out") as outs:
        model(*material.train.inputs)
    means = mean_baseline(model, material.train, by_place=False)
    tried = []
    z = recorded_z(model, material.train)
    for path, attention in own_attentions(model).items():
        head = f"{path}.{_least(attention, z[path])}"
        pruned = cut(material, [head], means, current=current)
        first = list(outs).index(f"{path}_residual.out")  # streams before do not change
        known = {name: outs[name] for name in list(outs)[:first]}
        refit(pruned.model, material.train, wanted, known=known)
        tried.append((pruned, score(pruned.model, material.subject.examples)))
    return min(tried, key=lambda pair: _badness(pair[1]))


def _badness(answers: Answers) -> tuple[int, float]:
    """Smaller is better: examples that are wrong, then the loss."""
    return int((~answers.exact).sum()), float(answers.loss.mean())


def _refit(material: Material, pruned: Pruned) -> None:
    """Choose the maps of ``pruned`` anew, towards the streams of the whole model."""
    refit(pruned.model, material.train, streams(material.model, material.train))


@torch.no_grad()
def _least(attention: Attention, z: Tensor) -> int:
    """The head that the others can best make up for: without it, the squared error rises least."""
    features = z.transpose(1, 2).flatten(0, 1).flatten(1).double()  # (tokens, H K)
    features = features - features.mean(dim=0)
    covariance = features.T @ features / len(features)
    covariance.diagonal().add_(1e-6 * covariance.diagonal().mean() + torch.finfo(torch.double).tiny)
    inverse = torch.linalg.inv(covariance)
    output = attention.output
    weight = output.weight.T if isinstance(output, nn.Linear) else torch.eye(len(covariance))
    width, rises = attention.head_width, []
    for index in range(attention.heads):
        own = slice(index * width, (index + 1) * width)
        rows = weight[own].double()
        rises.append(float(torch.trace(rows.T @ torch.linalg.solve(inverse[own, own], rows))))
    return rises.index(min(rises))
