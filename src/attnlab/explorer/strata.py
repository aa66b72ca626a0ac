"""Examples of a split by stratum: all, those of the task, and the wrong ones, found when asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.subjects import score
from attnlab.errors import InputError, brief, nearest
from attnlab.explorer.kept import Kept
from attnlab.explorer.scene import Asked, ExampleInput, Item, Page, Stratum
from attnlab.explorer.tasks import Inputs
from attnlab.model import Model
from attnlab.specs import Split

ANSWERED = 2000
"""Examples of a split that are answered to find the wrong ones."""
FEW_CLASSES = 26
"""Classes of which the wrong examples are a stratum each, at most."""
ALL, WRONG = "all", "wrong"
Groups = dict[str, Bool[Tensor, "N"]]
"""Which examples belong to a group, by its name."""


@dataclass(frozen=True)
class Strata:
    """Groups of the examples that ``inputs`` gives."""

    inputs: Inputs

    known: Kept[Split] = field(default_factory=Kept)
    answered: Kept[Split] = field(default_factory=Kept)
    """Groups that need answers, of the splits where somebody has asked for them."""

    def groups(self, split: Split) -> Groups:
        """Groups of a split: all, and those of the task."""
        return self.known.get(split, lambda: self._groups(split))

    def _groups(self, split: Split) -> Groups:
        examples = self.inputs.split(split)
        every = {ALL: torch.ones(len(examples), dtype=torch.bool)}
        return {**every, **self.inputs.task.strata(examples)}

    def every(self, split: Split, copied: Callable[[], Model]) -> Groups:
        """All groups, with the wrong examples."""
        return {**self.groups(split), **self._wrong(split, copied), **self.groups(split)}

    def counted(self, split: Split) -> list[Stratum]:
        """Groups by name; wrong ones are counted once they have been asked for."""
        found = [Stratum(name, int(group.sum())) for name, group in self.groups(split).items()]
        answered: Groups = self.answered.find(split) or {}
        return found + [
            Stratum(name, int(answered[name].sum()) if name in answered else None)
            for name in self._wrong_names()
        ]

    def _wrong_names(self) -> list[str]:
        labels = self.inputs.task.labels() if self.inputs.task.start is None else []
        classes = labels if self.inputs.task.target_length == 1 and len(labels) <= FEW_CLASSES else []
        return [WRONG, *(f"{WRONG}: {each}" for each in classes)]

    def _wrong(self, split: Split, copied: Callable[[], Model]) -> Groups:
        """The wrong ones among the first examples of a split, and those of each class."""
        return self.answered.get(split, lambda: self._find_wrong(split, copied()))

    def _find_wrong(self, split: Split, model: Model) -> Groups:
        examples = self.inputs.split(split)
        first = examples[slice(0, ANSWERED)]
        wrong = torch.zeros(len(examples), dtype=torch.bool)
        wrong[: len(first)] = ~score(model, first).exact
        groups = {WRONG: wrong}
        for number, name in enumerate(self._wrong_names()[1:]):
            groups[name] = wrong & (examples.targets.flatten() == number)
        return groups

    def page(self, split: Asked, stratum: str, start: int, count: int, copied: Callable[[], Model]) -> Page:
        """Some of the examples of a stratum; ``copied`` makes a model that may answer for long."""
        known = self.groups(split)
        if stratum in self._wrong_names() and stratum not in known:
            known = self._wrong(split, copied)
        if stratum not in known:
            names = [*self.groups(split), *self._wrong_names()]
            raise InputError(f"there is no stratum {brief(stratum)}{nearest(stratum, names)}")
        numbers: Int[Tensor, M] = known[stratum].nonzero()[:, 0]
        return Page(len(numbers), [self.item(split, n) for n in numbers[start : start + count].tolist()])

    def item(self, split: Split, index: int) -> Item:
        shown = self.inputs.read(ExampleInput(split, index)).shown
        return Item(index, shown.name, shown.truth, shown.pixels)
