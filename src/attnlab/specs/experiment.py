"""The whole of an experiment, the hash that identifies it, and the same with some keys set otherwise.

Keys are dotted, as in flags: ``training.lr``, ``model.positions``, ``training.optimiser.weight_decay``.
Settings go through JSON, so every rule of the spec is checked, and only once all of them are in
place: a width of 96 with 12 heads is fine, whichever is named first.
"""

import hashlib
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from attnlab.devices import CPU
from attnlab.errors import SpecError, brief, nearest
from attnlab.specs.codec import from_json, later, to_json, variants, word_as_json
from attnlab.specs.models import CNNModel, MLPModel, ModelSpec, PatchAttentionModel, Seq2SeqModel
from attnlab.specs.rules import require
from attnlab.specs.task import Task
from attnlab.specs.training import SGD, Muon, Training

# The kernels of the CNN see one channel, the image itself.
_WITHOUT_MATRICES = (CNNModel, MLPModel, PatchAttentionModel)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: the task, the model, how it is trained, and the seed of all chance in it."""

    task: Task
    model: ModelSpec = field(default_factory=Seq2SeqModel)
    training: Training = field(default_factory=Training)
    seed: int = 0
    engine: Literal["torch", "explicit"] = later("torch")
    """Who computes gradients: torch's autograd, or kernels written by hand for plain patch attention."""
    start: str = later("")
    """SHA-256 of the weights that training begins with, which the run holds; empty: fresh weights."""
    source: str = later("")
    """SHA-256 of the file that defines the task, which the run holds; empty: a task of a package."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**31, "seed", self.seed, "from 0 to 2147483647")
        self.task.check_model(self.model)
        if isinstance(self.training.optimiser, Muon) and isinstance(self.model, _WITHOUT_MATRICES):
            raise SpecError(
                "optimiser muon trains the matrices of transformer blocks and kernels between channels, "
                f"and model {brief(self.model.kind)} has neither; use training.optimiser adamw"
            )
        if not self.start:
            require(self.training.epochs >= 1, "training.epochs", self.training.epochs, "at least 1")
        if self.engine == "explicit":
            self._check_explicit()

    def settled(self) -> "Spec":
        """The spec as a run keeps it, with what its task finds by looking at its data written down."""
        return replace(self, task=self.task.settled())

    def _check_explicit(self) -> None:
        """The hand-written engine knows one model and one way to train it."""
        training = self.training
        if not (isinstance(self.model, PatchAttentionModel) and self.model.plain):
            raise SpecError(
                "engine explicit has hand-written gradients for plain patch attention only: one head, "
                "no projection, no residual, no norm; use engine torch"
            )
        if self.task.cell_shape != (1, 28, 28):
            raise SpecError(
                "engine explicit knows grey images of 28 x 28 pixels only, and the task's have the shape "
                f"{self.task.cell_shape}; use engine torch"
            )
        if not isinstance(training.optimiser, SGD) or training.optimiser != SGD():
            raise SpecError("engine explicit takes plain SGD steps only; use training.optimiser sgd")
        if training.precision != "float32":
            raise SpecError("engine explicit computes in float32 only; use engine torch")
        for name in ("clip", "ema", "smoothing"):
            value = getattr(training, name)
            require(value == 0, f"training.{name}", value, "0 for engine explicit")
        require(training.device == CPU, "training.device", training.device, f"{CPU!r} for engine explicit")


def spec_hash(spec: Spec) -> str:
    """Twelve hexadecimal digits that stay the same for the same experiment."""
    # Reading the JSON back turns whole numbers in float fields into floats, so that 1 and 1.0 agree.
    canonical = json.dumps(to_json(from_json(Spec, to_json(spec))), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def with_settings(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """``spec`` with dotted keys set; a variant is a word (``rotary:base=500``) or an object with a kind."""
    data = to_json(spec)
    # A variant goes before its own settings, which are keys of the new variant, not of the old one.
    for key in sorted(settings, key=lambda key: key.count(".")):
        known = dict(_keys(Spec, data))
        if key not in known:
            raise SpecError(f"{key} is not a key of this spec{nearest(key, known)}")
        *groups, last = key.split(".")
        place = data
        for group in groups:
            place = place.setdefault(group, {})  # a group that came later is not written by default
        place[last] = _as_json(known[key], key, settings[key])
    return from_json(Spec, data)


def whole_key(spec: Spec, key: str) -> str:
    """``training.lr`` for ``lr``: a key by its last word, where no other ends in it and is as short."""
    known = known_keys(spec)
    if key in known:
        return key
    ends = [each for each in known if each.endswith(f".{key}")]
    fewest = min((each.count(".") for each in ends), default=0)
    shortest = [each for each in ends if each.count(".") == fewest]
    if len(shortest) > 1:
        raise SpecError(f"{brief(key)} could be {' or '.join(shortest)}; write one of them in full")
    if not shortest:
        words = {each.rpartition(".")[2] for each in known} | set(known)
        raise SpecError(
            f"the spec of the task {brief(spec.task.kind)} has no key {brief(key)}{nearest(key, words)}"
        )
    return shortest[0]


def known_keys(spec: Spec) -> dict[str, Any]:
    """Every key that can be set, with its type; keys of a variant are those of its present kind."""
    return dict(_keys(Spec, to_json(spec)))


def _keys(cls: Any, data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(cls)
    for each in fields(cls):
        key, hint, value = prefix + each.name, hints[each.name], data.get(each.name, {})
        if kinds := variants(hint):
            kind = value.get("kind") if isinstance(value, dict) else None
            yield key, hint
            hint = kinds.get(kind) if isinstance(kind, str) else None  # ``from_json`` tells of others
        if is_dataclass(hint):
            yield from _keys(hint, value, f"{key}.")
        elif not kinds:
            yield key, hint


def _as_json(hint: Any, key: str, value: Any) -> Any:
    """A word becomes an object, and a whole float serves as an integer, since samplers give floats."""
    if variants(hint) and isinstance(value, str):
        try:
            return word_as_json(hint, value)
        except SpecError as error:
            raise SpecError(f"{key}: {error}") from error
    if hint is int and type(value) is float:
        require(value.is_integer(), key, value, "a whole number")
        return int(value)
    return dict(value) if isinstance(value, dict) else value
