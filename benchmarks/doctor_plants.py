"""Faults that can be planted in a training: what a plant is, and the parts that plants are made of.

A plant changes the spec, the model as it is built, the data as training and diagnosis see them, or a
function of the loop. Each kind of fault has at least two ways; of each kind one half of the ways, chosen by
a hash of their names, is set apart and looked at once, after every threshold has been chosen.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

from torch import Tensor

from attnlab.model import Model
from attnlab.models import build as building
from attnlab.sets import Examples, Splits
from attnlab.specs import Spec, with_settings

Harm = Literal["worse", "flattered"]
"""What a fault does: the model answers fewer test examples rightly, or fewer than was reported."""

SETTLED: dict[str, Any] = {}


@dataclass(frozen=True)
class Plant:
    """One way to plant one kind of fault."""

    kind: str
    way: str
    tasks: tuple[str, ...]
    """The tasks that it fits."""
    base: str = "adamw"
    """The healthy training it is planted in and compared with."""
    settings: Callable[[Spec], dict[str, Any]] = lambda _: SETTLED
    """Keys of the spec that the fault changes."""
    healthy: Callable[[Spec], dict[str, Any]] = lambda _: SETTLED
    """Keys that the healthy twin has as well, such as a second layer."""
    model: Callable[[Model], None] | None = None
    """What is broken in a model, each time one is built."""
    splits: Callable[[Splits], Splits] | None = None
    """What training and diagnosis see of the data; test examples stay as they are."""
    replaced: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = ()
    """Functions of the loop: their owner, their name, and the new one made of the old one."""
    harm: Harm = "worse"

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.way}"

    def twin(self, spec: Spec) -> Spec:
        """The healthy training that differs in the fault alone."""
        return with_settings(spec, self.healthy(spec)) if self.healthy(spec) else spec

    def sick(self, spec: Spec) -> Spec:
        """The spec with the fault, if it is one of the spec."""
        spec = self.twin(spec)
        return with_settings(spec, self.settings(spec)) if self.settings(spec) else spec

    @contextmanager
    def planted(self, spec: Spec) -> Iterator[None]:
        """The fault is there, for training and for diagnosis."""
        with ExitStack() as stack:
            for owner, name, make in self.replaced:
                stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
            if self.model is not None:
                stack.enter_context(patch.object(building, "_initialise", self._built))
            if self.splits is not None:
                stack.enter_context(patch.object(type(spec.task), "splits", self._drawn(spec)))
            yield

    def _built(self, model: Model) -> None:
        assert self.model is not None
        INITIALISE(model)
        self.model(model)

    def _drawn(self, spec: Spec) -> Callable[[Any, int], Splits]:
        change, clean = self.splits, type(spec.task).splits
        assert change is not None
        return lambda task, seed: change(in_memory(clean(task, seed)))


INITIALISE = building._initialise


def in_memory(splits: Splits) -> Splits:
    """The same examples as tensors, also where they are made when asked for."""

    def kept(examples: Examples) -> Examples:
        return Examples(examples.inputs, examples.targets)

    return Splits(kept(splits.train), kept(splits.valid), kept(splits.test))


def set_apart(plants: list[Plant]) -> set[str]:
    """The names of the plants that no threshold was chosen by: of each kind one half of its ways."""
    found = set()
    for kind in sorted({each.kind for each in plants}):
        ways = sorted({each.name for each in plants if each.kind == kind}, key=_hash)
        found |= set(ways[: len(ways) // 2])
    return found


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def changed(examples: Examples, *, inputs: tuple[Tensor, ...] = (), targets: Any = None) -> Examples:
    """Examples with other inputs or targets."""
    return Examples(inputs or examples.inputs, examples.targets if targets is None else targets)
