"""Taking heads out at z, before they mix, and what takes the place of a head's z then.

A mask m in [0, 1] for each head moves its z towards a baseline b:

    z <- m z + (1 - m) b

A mask of 1 changes nothing, not even the last bit; a mask of 0 puts the baseline in the head's place, and
gates between the two can be learned (Michel, Levy and Neubig, 2019; Voita et al., 2019).

The baselines:

    zero       0
    mean       the mean of z over training examples, for each place its own
    resample   z of another example at the same place (Chan et al., 2022: causal scrubbing)
    optimal    the constant, the same at all places, with the lowest loss (Li and Janson, 2024)

Zero is a value that the rest of the model may never have met, so it can cost more than the head was worth;
the mean keeps what is common to all examples; resampling keeps the distribution but brings in what is wrong
for this example; the optimal constant leaves only what the head does for one example and not for another.

The optimal constant of a head is

    c* = argmin over c of the mean loss over training examples with z of the head replaced by c

one vector of K numbers, the same at all places, so that W_o c* can be added to the output bias and the head
be cut away. It is found by gradient descent on c alone (Adam; Kingma and Ba, 2015), from the better of zero
and the mean of z, and is never worse than either on the examples it is fitted on. Each head's constant is
the one for which all other heads are there.

The heads of an attention are fitted at once: each has its own rows of a batch, so no head's gradient meets
another's constant. What comes before the attention is computed once and supplied.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.choices import BaselineName
from attnlab.analysis.parallel import Tick, in_parallel
from attnlab.analysis.subjects import BATCH, Subject, batch_size, batches, require_examples
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.progress import Progress, Stages, silent
from attnlab.sets import Examples
from attnlab.taps import SUPPLIED, Edit, edit, record, supply


@dataclass(frozen=True)
class Baseline:
    """For each attention by its path a value (1 or N, H, 1 or T, K): for all examples or for each of N, and
    for all places or for each. Values are on the model's device.
    """

    name: str
    values: dict[str, Float[Tensor, "_ _ _ _"]]

    def rows(self, part: slice) -> "Baseline":
        """The baseline of a part of the examples."""
        cut = {path: value if len(value) == 1 else value[part] for path, value in self.values.items()}
        return Baseline(self.name, cut)


def zero_baseline(model: Model) -> Baseline:
    """Nothing at all."""
    known, device = attentions(model).items(), device_of(model)
    values = {path: torch.zeros(1, each.heads, 1, each.head_width, device=device) for path, each in known}
    return Baseline("zero", values)


def mean_baseline(model: Model, examples: Examples, *, by_place: bool = True) -> Baseline:
    """The mean of z over ``examples``, which should be training examples; of all places, if so asked.

    Padding does not count.
    """
    means = means_at(model, examples, [f"{path}.z" for path in attentions(model)], by_place=by_place)
    return Baseline("mean", {name.removesuffix(".z"): mean for name, mean in means.items()})


def means_at(
    model: Model, examples: Examples, names: Sequence[str], *, by_place: bool = True
) -> dict[str, Float[Tensor, "1 ..."]]:
    """The mean over ``examples`` of the values (N, H, T, K) or (N, T, K) at taps by their ``names``, for
    each place or over all; padding does not count.
    """
    require_examples(examples)
    totals: dict[str, Tensor] = {}  # (1, H, T, K + 1): sums and, in a last coordinate, of ones
    for part in batches(examples, model, batch_size(model, examples)):
        for name, value in recorded_at(model, part, names).items():
            own = model.mask_at(name.rpartition(".")[0], *part.inputs)
            each = F.pad(value.cpu().double(), (0, 1), value=1.0)
            each = each if value.dim() == 4 else each[:, None]
            counted = each if own is None else each * own[:, None, :, None].cpu()
            totals[name] = totals.get(name, 0) + counted.sum(dim=0, keepdim=True)
    if not by_place:
        totals = {name: total.sum(dim=2, keepdim=True) for name, total in totals.items()}
    like = next(model.parameters())
    means = {name: total[..., :-1] / total[..., -1:].clamp(min=1) for name, total in totals.items()}
    return {name: (mean if name.endswith(".z") else mean[:, 0]).to(like) for name, mean in means.items()}


def resample_baseline(model: Model, examples: Examples, *, seed: int = 0) -> Baseline:
    """For each of ``examples`` z of another one, given by ``others``; it fits these examples only.

    Where there is padding, the other one is as long.
    """
    require_examples(examples)
    size = batch_size(model, examples)
    found = [recorded_z(model, part) for part in batches(examples, model, size)]
    own = model.input_mask(*to_device_of(model, *examples.inputs))
    groups = None if own is None else own.sum(dim=1).cpu()
    (source,) = to_device_of(model, others(len(examples), seed, groups=groups))
    values = {path: torch.cat([part[path] for part in found])[source] for path in found[0]}
    return Baseline("resample", values)


def others(count: int, seed: int, *, groups: Int[Tensor, "N"] | None = None) -> Int[Tensor, "N"]:
    """For each of ``count`` examples another one: the next in a circle whose order the seed gives.

    Each of the ``groups`` has a circle of its own; who is alone in it is its own other.
    """
    if count < 2:
        raise InputError(f"there is {count} example; to resample, there must be at least 2")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    names = torch.zeros(count, dtype=torch.long) if groups is None else groups
    following = torch.empty_like(order)
    for name in set(names.tolist()):
        circle = order[names[order] == name]
        following[circle] = circle.roll(-1)
    return following


def recorded_z(model: Model, examples: Examples) -> dict[str, Float[Tensor, "_ _ _ _"]]:
    """z (N, H, T, K) of every attention, in the order of computation."""
    found = recorded_at(model, examples, [f"{path}.z" for path in attentions(model)])
    return {name.removesuffix(".z"): z for name, z in found.items()}


@torch.no_grad()  # not inference mode: gates are learned with these values in the graph
def recorded_at(model: Model, examples: Examples, names: Sequence[str]) -> dict[str, Tensor]:
    """The values at taps by their ``names``, in the order of computation."""
    with record(model, *names) as seen:
        model(*examples.inputs)
    return seen


Heads = frozenset[str]
"""Heads that are taken out together."""

Mask = Mapping[str, Float[Tensor, "*B H"]]
"""For each attention by its path a number for each head, the same for all examples or one for each."""


def head_names(model: Model) -> list[str]:
    """Every head of ``model`` as path.index, also of a model whose paths are its own."""
    return [f"{path}.{index}" for path, each in attentions(model).items() for index in range(each.heads)]


def check_heads(model: Model, heads: Iterable[str]) -> None:
    """Refuse a name that is no head of ``model``."""
    known = head_names(model)
    for head in heads:
        if head not in known:
            raise LabError(f"the model has no head {brief(head)}{nearest(head, known)}")


def mask_without(model: Model, removed: Iterable[str]) -> dict[str, Tensor]:
    """The mask that is 0 for the heads ``removed`` and 1 for all others."""
    gone = set(removed)
    check_heads(model, gone)
    return {
        path: torch.tensor([float(f"{path}.{index}" not in gone) for index in range(each.heads)])
        for path, each in attentions(model).items()
    }


@contextmanager
def masked(model: Model, mask: Mask, baseline: Baseline) -> Iterator[None]:
    """Move every z towards ``baseline`` as ``mask`` says; attentions that it does not name stay whole.

    Gradients flow into the mask and into the baseline. The baseline must have a value for every place of
    z or one for all of them; while fewer tokens of an answer are decoded, its first places serve.
    """
    known, changes = attentions(model), dict[str, Edit]()
    for path, kept in mask.items():
        if path not in known:
            raise LabError(f"the model has no attention {brief(path)}{nearest(path, known)}")
        if kept.shape[-1] != known[path].heads:
            count = known[path].heads
            raise LabError(f"the mask of {path} has {kept.shape[-1]} values for {count} heads")
        if kept.requires_grad or not bool((kept == 1).all()):
            if bool(((kept < 0) | (kept > 1)).any()):
                raise LabError(f"the mask of {path} is {kept.tolist()}, but it must lie between 0 and 1")
            if path not in baseline.values:
                raise LabError(f"the baseline {baseline.name} has no value for {path}")
            changes[f"{path}.z"] = _towards(path, baseline, kept)
    with edit(model, changes):
        yield


def _towards(path: str, baseline: Baseline, kept: Float[Tensor, "*B H"]) -> Edit:
    whole = baseline.values[path]
    weight = kept[..., None, None].to(whole.device)

    def move(z: Tensor) -> Tensor:
        value = whole if whole.shape[2] == 1 else whole[:, :, : z.shape[2]]
        if not all(have in (1, want) for have, want in zip(value.shape, z.shape, strict=True)):
            raise LabError(
                f"the baseline {baseline.name} of {path} has the shape {tuple(value.shape)}, "
                f"which does not fit z of shape {tuple(z.shape)}"
            )
        return torch.lerp(value.to(z.dtype), z, weight.to(z.dtype))  # exact at 0 and at 1

    return move


Values = dict[str, Tensor]
"""Values at taps, by the taps' names."""


def run_pass(
    model: Model, examples: Examples, known: Values, mask: Mask, baseline: Baseline
) -> tuple[Float[Tensor, "N *T V"], Values]:
    """Logits, and what can be supplied to other passes, in the order of computation, z before its mask."""
    recording = record(model, *(f"*.{last}" for last in SUPPLIED), detach=False)
    with recording as seen, masked(model, mask, baseline), supply(model, known):
        logits = model(*examples.inputs)
    return logits, {**known, **seen}


def until(values: Values, path: str) -> Values:
    """All that is computed before the attention at ``path`` mixes its heads."""
    names = list(values)
    return {name: values[name] for name in names[: names.index(f"{path}.z") + 1]}


STEPS = 120
ROWS = 50  # examples a step
RATE = 0.3  # first step size, times the root mean square of z; it falls to 0


def optimal_baseline(
    model: Model, examples: Examples, *, steps: int = STEPS, seed: int = 0, progress: Progress = silent
) -> Baseline:
    """The optimal constant of every head on ``examples``, which should be training examples."""
    starts = [zero_baseline(model), mean_baseline(model, examples, by_place=False)]
    paths = list(starts[1].values)

    def work(model: Model, path: str, tick: Tick) -> Tensor:
        return _Fit(model, path, examples).run([each.values[path] for each in starts], steps, seed, tick)

    found = in_parallel(model, paths, work, steps=steps * len(paths), progress=progress)
    return Baseline("optimal", dict(zip(paths, found, strict=True)))


class _Fit:
    """Constants of all heads of one attention; what comes before these mix is ``known``."""

    def __init__(self, model: Model, path: str, examples: Examples) -> None:
        self.model, self.path, self.device = model, path, device_of(model)
        self.examples = examples.to(self.device)
        self.heads = attentions(model)[path].heads
        with torch.no_grad():
            every = batches(self.examples, model, batch_size(model, self.examples))
            passes = (run_pass(model, part, {}, {}, Baseline("none", {})) for part in every)
            parts = [until(values, path) for _, values in passes]
        self.known = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def run(
        self, starts: list[Float[Tensor, "1 H 1 K"]], steps: int, seed: int, tick: Tick
    ) -> Float[Tensor, "1 H 1 K"]:
        start, least = self.best([(each, self.loss(each)) for each in starts])
        constant = start.clone().requires_grad_()
        rate = RATE * float(self.known[f"{self.path}.z"].square().mean().sqrt())
        optimiser = torch.optim.Adam([constant], lr=rate, betas=(0.9, 0.99))
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
        chance = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            rows = torch.randint(len(self.examples), (ROWS,), generator=chance).to(self.device)
            (constant.grad,) = torch.autograd.grad(self.losses(rows, constant).sum(), constant)
            optimiser.step()
            schedule.step()
            tick()
        end = constant.detach()
        return self.best([(start, least), (end, self.loss(end))])[0]

    def losses(self, rows: Int[Tensor, "N"], constant: Float[Tensor, "1 H 1 K"]) -> Float[Tensor, "H"]:
        """The mean loss over ``rows`` without each head, its constant in its place."""
        alone = torch.eye(self.heads, device=self.device)
        mask = {self.path: 1 - alone.repeat_interleave(len(rows), dim=0)}
        rows = rows.repeat(self.heads)
        part, known = self.examples[rows], {name: value[rows] for name, value in self.known.items()}
        towards = Baseline("optimal", {self.path: constant})
        with supply(self.model, known), masked(self.model, mask, towards):
            logits = self.model(*part.inputs)
        each = F.cross_entropy(logits.flatten(0, -2), part.targets.flatten(), reduction="none")
        return each.reshape(self.heads, -1).mean(dim=1)

    @torch.no_grad()
    def loss(self, constant: Float[Tensor, "1 H 1 K"]) -> Float[Tensor, "H"]:
        """The sum over all examples of the loss without each head."""
        every = torch.arange(len(self.examples), device=self.device)
        parts = torch.split(every, max(1, BATCH // self.heads))
        return torch.stack([len(part) * self.losses(part, constant) for part in parts]).sum(dim=0)

    def best(
        self, options: list[tuple[Float[Tensor, "1 H 1 K"], Float[Tensor, "H"]]]
    ) -> tuple[Float[Tensor, "1 H 1 K"], Float[Tensor, "H"]]:
        """For each head the constant with the lowest loss, and this loss."""
        constants, losses = zip(*options, strict=True)
        least, every = torch.stack(losses).min(dim=0), torch.arange(self.heads, device=self.device)
        return torch.cat(constants)[least.indices, every][None], least.values


def make_baseline(
    name: BaselineName, subject: Subject, training: Examples, seed: int, stages: Stages
) -> Baseline:
    """A baseline by its name: from training examples, or (resample) from the subject's own."""
    match name:
        case "zero":
            return zero_baseline(subject.model)
        case "mean":
            return mean_baseline(subject.model, training)
        case "resample":
            return resample_baseline(subject.model, subject.examples, seed=seed)
        case "optimal":
            progress = stages("fitting optimal constants")
            return optimal_baseline(subject.model, training, seed=seed, progress=progress)
