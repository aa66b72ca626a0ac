"""What happens in a model while it answers one input: the answer, and the values at some taps.

The model answers first, by greedy decoding; then one pass is fed what it said, as ``analysis/record.py``
does for many inputs. A class needs the one pass only. Logits behind the last label are never said.
"""

import copy
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.record import patch_names
from attnlab.devices import to_device_of
from attnlab.explorer.edits import Change, Edit, Found, Off, Parts, StandInName, StandIns, Swap, changed
from attnlab.explorer.edits import Values as TapValues
from attnlab.explorer.messages import pack
from attnlab.explorer.scene import Answer, ExampleInput, Input, Token
from attnlab.explorer.standins import StandInValues, plain_tensors
from attnlab.explorer.tasks import Given, Inputs, output_labels
from attnlab.model import HIDDEN, Model, Site
from attnlab.sets import shifted
from attnlab.specs import Task

TOP = 5
"""Labels of a token that are told with their probabilities."""
OTHERS = 16
"""Other inputs whose values are kept for swaps."""


@dataclass(frozen=True)
class Happened:
    """``fed`` is what the model was given, ``seen`` the values at taps by their names; ``sure`` are the
    probabilities that ``logits`` tell.
    """

    said: Int[Tensor, "T"]
    logits: Float[Tensor, "T V"]
    sure: Float[Tensor, "T V"]
    fed: tuple[Tensor, ...]
    seen: dict[str, Tensor]


@dataclass(frozen=True)
class Probe:
    """What one pass shows of a model: how many ``logits`` it gives, how many ``tokens`` the input of this
    pass had, ``front`` of them standing before those of the input, and the width of each feed-forward part.
    """

    logits: int
    tokens: int
    front: int
    hidden: dict[str, int]


@final
@dataclass(frozen=True)
class Answerer:
    """A model that answers one input at a time, as it is or edited."""

    inputs: Inputs
    parts: Parts
    stand_ins: StandInValues
    others: OrderedDict[Any, TapValues] = field(default_factory=OrderedDict)

    @staticmethod
    def of(inputs: Inputs) -> "Answerer":
        parts = Parts.of(inputs.model)
        return Answerer(inputs, parts, StandInValues(inputs, parts))

    @property
    def model(self) -> Model:
        return self.inputs.model

    def copied(self) -> "Answerer":
        """The same with a copy of the model, for somebody who works for long."""
        inputs = replace(self.inputs, model=copy.deepcopy(self.model))
        parts = Parts.of(inputs.model)
        return Answerer(inputs, parts, StandInValues(inputs, parts, self.stand_ins.known))

    @cached_property
    def probe(self) -> Probe:
        """What one pass with the first validation example shows."""
        sites = self.parts.sites.values()
        example = self.inputs.single("valid", 0)
        feeds = [f"{path}{HIDDEN}" for path in self.parts.feeds]
        with (
            torch.inference_mode(),
            keep(self.parts, [*(f"{s.path}.pattern" for s in sites), *feeds]) as seen,
        ):
            logits = self.model(*to_device_of(self.model, *example.inputs)).shape[-1]
        counts = [
            seen[f"{site.path}.pattern"].shape[axis]
            for site in sites
            for axis, side in ((2, site.queries), (3, site.keys))
            if side == "input" and not (axis == 3 and self.joined(site))
        ]
        tokens = counts[0] if counts else 0
        known = len(self.input_labels(self.inputs.read(ExampleInput("valid", 0)), tokens))
        hidden = {path: seen[name].shape[-1] for path, name in zip(self.parts.feeds, feeds, strict=True)}
        return Probe(logits, tokens, max(0, tokens - known), hidden)

    @cached_property
    def labels(self) -> list[str]:
        """What can be said."""
        return output_labels(self.inputs.task, self.probe.logits)

    def joined(self, site: Site) -> bool:
        """Whether the keys of a site are places of the answer."""
        return site.kind == "cross" and self.model.joined_keys() is not None

    def input_labels(self, given: Given, tokens: int) -> list[str]:
        """Names of the parts of an input, without those in front."""
        image = self.inputs.task.images or self.model.patch_size is not None
        if not image or not tokens:
            return given.shown.labels
        return patch_names(given.inputs[self.model.source[0]].shape[-2:], tokens)

    def happen(self, given: Given, names: Iterable[str]) -> Happened:
        """Answer ``given``, and record at the taps called ``names``."""
        task, model, labels = self.inputs.task, self.model, len(self.labels)
        if task.start is None:
            fed = to_device_of(model, *given.inputs)
        else:
            (source,) = to_device_of(model, given.inputs[0])
            length = task.target_length if given.targets is None else given.targets.shape[1]
            said = decode(model, source, start=task.start, length=length, labels=labels)
            said = said[:, : int(ended(said, task.end))]
            fed = (source, *to_device_of(model, shifted(said, task.start)))
        with keep(self.parts, names) as seen:
            logits = model(*fed)
        logits = logits.reshape(-1, logits.shape[-1])[:, :labels]
        sure = (logits / model.temperature).softmax(dim=-1).cpu()
        return Happened(logits.argmax(dim=-1).cpu(), logits, sure, fed, seen)

    @contextmanager
    def changing(
        self, edits: Sequence[Edit], other: Input | None, length: int | None = None
    ) -> Iterator[None]:
        """Apply edits while the context is open; ``length`` is that of the input to come, None if it is to
        be seen then.
        """
        swapped = any(isinstance(each, Swap) for each in edits)
        with self.applying(
            edits, self.values_for(other) if swapped and other is not None else None, length
        ):
            yield

    @contextmanager
    def applying(
        self, edits: Sequence[Edit], values: TapValues | None, length: int | None = None
    ) -> Iterator[None]:
        """The same where the ``values`` to swap in are known."""
        resampled = any(isinstance(each, Off) and each.to == "resample" for each in edits)
        with ExitStack() as stack:
            ready: StandIns = partial(self._ready, length or 0)
            if length is None and resampled and self.inputs.padded:
                ready = stack.enter_context(self._following())
            stack.enter_context(changed(self.parts, edits, ready, values))
            yield

    def _ready(self, length: int, name: StandInName) -> Found:
        """What stands in, computed before anything is edited."""
        values = self.stand_ins.get(name, length)
        return lambda: values

    @contextmanager
    def _following(self) -> Iterator[StandIns]:
        """What stands in where it differs with the length of inputs: it is seen as a pass begins, and asked
        of a copy of the model, which nobody edits.
        """
        unedited, front = self.copied().stand_ins, self.probe.front
        length = self.inputs.task.input_length
        site = next(site for site in self.parts.sites.values() if site.queries == "input")

        def look(q: Tensor) -> Tensor:
            nonlocal length
            length = q.shape[2] - front
            return q

        with self.parts.taps[f"{site.path}.q"].applying(look):
            yield lambda name: lambda: unedited.get(name, length)

    @plain_tensors()
    def values_for(self, other: Input) -> TapValues:
        """All outputs of heads and feed-forward parts while the model answers another input, unedited."""
        key = repr(pack(other))
        if key not in self.others:
            self.others[key] = self.happen(self.inputs.read(other), self.parts.outputs()).seen
            while len(self.others) > OTHERS:
                self.others.popitem(last=False)
        return self.others[key]


def decode(model: Model, source: Tensor, *, start: int, length: int, labels: int) -> Int[Tensor, "1 T"]:
    """Greedy decoding, among the first ``labels``."""
    step = model.begin(source)
    token = torch.full((1, 1), start, device=source.device)
    said = []
    for _ in range(length):
        token = step(token)[..., :labels].argmax(dim=-1)
        said.append(token)
    return torch.cat(said, dim=1).cpu()


def ended(said: Int[Tensor, "N T"], end: int | None) -> Int[Tensor, "N"]:
    """Tokens of each answer without what fills it up: of several ends at its end, the first."""
    filling = torch.zeros_like(said) if end is None else (said == end).flip(-1).long().cumprod(dim=-1)
    return said.shape[1] - (filling.sum(dim=-1) - 1).clamp(min=0)


@contextmanager
def keep(parts: Parts, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """Record at taps, behind the edits that are active there, during one pass; nothing is copied."""
    seen: dict[str, Tensor] = {}

    def look(name: str) -> Change:
        def kept(value: Tensor) -> Tensor:
            seen[name] = value
            return value

        return kept

    with ExitStack() as stack:
        for name in dict.fromkeys(names):
            stack.enter_context(parts.taps[name].applying(look(name)))
        yield seen


def described(task: Task, happened: Happened, given: Given, labels: list[str]) -> Answer:
    """The answer for people, token by token."""
    sure = happened.sure
    most, which = sure.topk(min(TOP, len(labels)), dim=-1)
    chosen = sure.gather(1, happened.said[:, None])[:, 0].tolist()
    places = task.places_of(len(chosen))
    rows = zip(happened.said.tolist(), places, chosen, most.tolist(), which.tolist(), strict=True)
    tokens = [
        Token(labels[said], place, chance, list(zip((labels[n] for n in numbers), best, strict=True)))
        for said, place, chance, best, numbers in rows
    ]
    right = None if given.right is None else given.right.reshape(1, -1)
    correct = None if right is None else torch.equal(happened.said, right[0, : int(ended(right, task.end))])
    text = task.answer(happened.said)
    return Answer(text, sure.double().gather(1, happened.said[:, None]).prod().item(), correct, tokens)
