"""Heads really removed from a model, and the proof that what is left computes the same."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from attnlab.analysis.ablate.baselines import Baseline, head_names, mask_without, masked
from attnlab.analysis.subjects import Subject, batch_size, batches
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import build_for
from attnlab.models.surgery import Constants, remove_heads
from attnlab.notation import parse_head
from attnlab.sets import Examples
from attnlab.specs import ModelSpec, Spec

MOST_DIFFERENCE = 1e-5  # between the logits of a pruned and of a masked model
CHECKED = 200  # examples on which they are compared, every time


@dataclass(frozen=True)
class Pruned:
    """A model without some heads. ``removed`` names them as the whole model does, the last one last.

    ``spec`` is that of a model that is built from one.
    """

    spec: ModelSpec | None
    model: Model
    removed: tuple[str, ...]
    difference: float
    """The largest difference between its logits and the masked model's, before anything was refitted."""


@dataclass(frozen=True)
class Cut:
    """A model whose heads are gone, and the weights that it should have, in double precision."""

    model: Model
    weights: dict[str, Tensor]
    spec: ModelSpec | None = None


class Surgery(ABC):
    """How heads are taken out of a kind of model."""

    @property
    def spec(self) -> ModelSpec | None:
        """What the whole model is built from, if it is built from anything."""
        return None

    @abstractmethod
    def cut(self, current: Pruned, double: Model, removed: Sequence[str], constants: Constants) -> Cut:
        """The ``current`` model, of which ``double`` is a copy in double precision, without ``removed``."""


@final
@dataclass(frozen=True)
class OwnSurgery(Surgery):
    """Of a model that is built from a spec."""

    whole: Spec

    @property
    def spec(self) -> ModelSpec:
        return self.whole.model

    def cut(self, current: Pruned, double: Model, removed: Sequence[str], constants: Constants) -> Cut:
        assert current.spec is not None
        spec, weights = remove_heads(current.spec, double, [*map(parse_head, removed)], constants)
        with torch.random.fork_rng():
            model = build_for(replace(self.whole, model=spec, engine="torch")).eval()
        return Cut(model, weights, spec)


@dataclass(frozen=True)
class Material:
    """What elimination works on: the whole model, examples to fit by and examples to choose by."""

    surgery: Surgery
    subject: Subject
    train: Examples

    @property
    def model(self) -> Model:
        """The whole model."""
        return self.subject.model


@torch.no_grad()
def cut(
    material: Material, removed: Sequence[str], baseline: Baseline, *, current: Pruned | None = None
) -> Pruned:
    """The whole or the ``current`` model without ``removed``, whose z are constants now.

    It is cut and checked against the masked model in double precision.
    """
    current = current or Pruned(material.surgery.spec, material.model, (), 0.0)
    left = [head for head in head_names(material.model) if head not in current.removed]
    whole_names = dict(zip(head_names(current.model), left, strict=True))
    names = [whole_names[head] for head in removed]
    before = deepcopy(current.model).double()
    values = {path: value.double() for path, value in baseline.values.items()}
    constants = {path: value[0, :, 0] for path, value in values.items()}
    made = material.surgery.cut(current, before, removed, constants)
    after = deepcopy(made.model).double()
    after.load_state_dict(made.weights)
    difference = 0.0
    some = material.subject.examples[slice(0, CHECKED)]
    for part in batches(some, current.model, batch_size(current.model, some)):
        given = [each.double() if each.is_floating_point() else each for each in part.inputs]
        with masked(before, mask_without(before, removed), Baseline(baseline.name, values)):
            expected = before(*given)
        difference = max(difference, float((after(*given) - expected).abs().max()))
    if not difference <= MOST_DIFFERENCE:
        raise LabError(
            f"logits without {', '.join(names)} differ by {difference:.1e} from those of the masked model; "
            f"at most {MOST_DIFFERENCE:.0e} is allowed"
        )
    made.model.load_state_dict(made.weights)  # rounds weights, but not fixed frequencies as float() would
    return Pruned(made.spec, made.model, (*current.removed, *names), max(difference, current.difference))
