"""Choosing heads jointly: one is eliminated after the other, and the rest are judged anew each time.

Without refitting, every head that is left is a candidate. With refitting, a candidate has to be taken out,
the rest fitted and the result tried, which takes seconds; so each attention offers one, the head for which
the others can best make up. With the covariance C of an attention's z over training tokens and the rows W_h
of its output, leaving out head h and choosing the other rows anew raises the squared error of the output by

    trace(W_h^T [(C^-1)_hh]^-1 W_h)

(Hassibi and Stork, 1992, for a block of weights), and the head with the smallest rise is offered.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.analysis.ablate import mask_without, masked
from attnlab.analysis.ablate.baselines import Baseline, mean_baseline, recorded_z
from attnlab.analysis.ablate.without import evaluate_without
from attnlab.analysis.prune.refit import refit, streams
from attnlab.analysis.subjects import Answers, Subject, answers_to
from attnlab.attention import Attention
from attnlab.errors import LabError
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions, build_model, heads
from attnlab.models.surgery import remove_heads
from attnlab.notation import Head, parse_head
from attnlab.spec import ModelSpec, Tokens
from attnlab.taps import record

MOST_DIFFERENCE = 1e-5  # between the logits of a pruned and of a masked model
CHECKED = 200  # examples on which they are compared, every time


@dataclass(frozen=True)
class Pruned:
    """A model without some heads. ``removed`` names them as the whole model does, the last one last."""

    spec: ModelSpec
    model: Model
    removed: tuple[Head, ...]
    difference: float
    """The largest difference between its logits and the masked model's, before anything was refitted."""


@dataclass(frozen=True)
class Material:
    """What elimination works on: the whole model, examples to fit by and examples to choose by."""

    spec: ModelSpec
    subject: Subject
    train: Examples
    vocabulary: int
    tokens: Tokens | None = None
    image: tuple[int, int, int] | None = None

    @property
    def model(self) -> Model:
        """The whole model."""
        return self.subject.model


def eliminate(material: Material, baseline: Baseline) -> Iterator[tuple[Head, Answers]]:
    """Heads in the order in which they can go, each with the answers without it and all before it.

    The one goes next without which most examples are right, and of several such the loss is lowest.
    """
    gone: list[str] = []
    left = [str(head) for head in heads(material.model)]
    while left:
        sets = {head: frozenset((*gone, head)) for head in left}
        answers = evaluate_without(material.subject, sets.values(), baseline)
        best = min(left, key=lambda head: _badness(answers[sets[head]]))
        gone.append(best)
        left.remove(best)
        yield parse_head(best), answers[sets[best]]


def eliminate_refitted(material: Material) -> Iterator[tuple[Pruned, Answers]]:
    """Models with one head less each, refitted, with their answers."""
    wanted = streams(material.model, material.train)
    whole = tuple(heads(material.model))
    current = Pruned(material.spec, material.model, (), 0.0)
    while len(current.removed) < len(whole):
        names = _names(current, whole)
        outs = _outs(current.model, material.train)
        means = mean_baseline(current.model, material.train, by_place=False)
        tried = []
        for head in _offers(current.model, material.train):
            pruned = _cut(material, current, [head], [names[head]], means)
            refit(pruned.model, material.train, wanted, known=_before(outs, head))
            tried.append((pruned, answers_to(material.subject, pruned.model)))
        current, answers = min(tried, key=lambda pair: _badness(pair[1]))
        yield current, answers


def _badness(answers: Answers) -> tuple[int, float]:
    """Smaller is better: examples that are wrong, then the loss."""
    return int((~answers.exact).sum()), float(answers.loss.mean())


def cut(material: Material, removed: Sequence[Head], baseline: Baseline) -> Pruned:
    """The whole model without ``removed``, whose z are constants now."""
    return _cut(material, Pruned(material.spec, material.model, (), 0.0), removed, removed, baseline)


def refitted(material: Material, pruned: Pruned) -> Pruned:
    """``pruned`` with its maps chosen anew."""
    refit(pruned.model, material.train, streams(material.model, material.train))
    return pruned


@torch.no_grad()
def _outs(model: Model, examples: Examples) -> dict[str, Tensor]:
    """The stream after each residual, in the order of computation."""
    with record(model, "*_residual.out") as seen:
        model(*examples.inputs)
    return seen


def _before(outs: dict[str, Tensor], head: Head) -> dict[str, Tensor]:
    """Those streams that do not change when ``head`` goes."""
    names = list(outs)
    return {name: outs[name] for name in names[: names.index(f"{head.attention}_residual.out")]}


@torch.no_grad()
def _cut(
    material: Material, current: Pruned, removed: Sequence[Head], names: Sequence[Head], baseline: Baseline
) -> Pruned:
    """``current`` without further heads; cut and checked against the masked model in double precision."""
    before = deepcopy(current.model).double()
    values = {path: value.double() for path, value in baseline.values.items()}
    constants = {path: value[0, :, 0] for path, value in values.items()}
    spec, weights = remove_heads(current.spec, before, removed, constants)
    with torch.random.fork_rng():
        model = build_model(
            spec, vocabulary=material.vocabulary, tokens=material.tokens, image=material.image
        ).eval()
    after = deepcopy(model).double()
    after.load_state_dict(weights)
    given = [part.double() if part.is_floating_point() else part for part in _some(material).inputs]
    with masked(before, mask_without(before, map(str, removed)), Baseline(baseline.name, values)):
        expected = before(*given)
    difference = float((after(*given) - expected).abs().max())
    if not difference <= MOST_DIFFERENCE:
        raise LabError(
            f"logits without {', '.join(map(str, names))} differ by {difference:.1e} from those of the "
            f"masked model; at most {MOST_DIFFERENCE:.0e} is allowed"
        )
    model.load_state_dict(weights)  # rounds weights, but not fixed frequencies as model.float() would
    worst = max(difference, current.difference)
    return Pruned(spec, model, (*current.removed, *names), worst)


def _some(material: Material) -> Examples:
    return material.subject.examples[slice(0, CHECKED)]


def _offers(model: Model, train: Examples) -> list[Head]:
    """Of each attention the head that the others can best make up for."""
    found = recorded_z(model, train)
    return [
        parse_head(f"{path}.{_least(attention, found[path])}")
        for path, attention in attentions(model).items()
    ]


@torch.no_grad()
def _least(attention: Attention, z: Tensor) -> int:
    """The head whose loss raises the squared error of the output least."""
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


def _names(current: Pruned, whole: tuple[Head, ...]) -> dict[Head, Head]:
    """Names that heads had in the whole model, by those they have now."""
    left = [head for head in whole if head not in current.removed]
    return dict(zip(heads(current.model), left, strict=True))
