"""Specs: frozen dataclasses that say everything about an experiment.

``Spec(task, model, training, seed)`` is what a run is made from. The same classes become JSON,
command-line flags and the hash that identifies an experiment. Where there is a choice between
variants (positions, optimisers, schedules) the choice is a closed union of small classes;
in JSON such a value carries its ``kind``, in a flag it is written ``kind:key=value,key=value``.

Values are checked when a spec is made, so that a spec that exists is a spec that can be built.
"""

from attnlab.specs.codec import from_json, read_variant, to_json, variants, write_variant
from attnlab.specs.experiment import Spec, spec_hash, whole_key, with_settings
from attnlab.specs.models import (
    Augment,
    BlocksModelSpec,
    CNNModel,
    MLPModel,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Pooling,
    Seq2SeqModel,
    TokensModel,
    VitModel,
)
from attnlab.specs.positions import (
    Alibi,
    Columns,
    Coupled,
    GridLearned,
    GridPositionSpec,
    GridRotary,
    GridSinusoidal,
    GridStart,
    Interpolated,
    Learned,
    NoPositions,
    PatchPositionSpec,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Sinusoidal,
    SinusoidalStart,
    StartSpec,
    UniformStart,
    XavierStart,
    ZeroStart,
)
from attnlab.specs.rules import require
from attnlab.specs.task import Split, Task, Tokens
from attnlab.specs.training import (
    SGD,
    AdamW,
    Constant,
    Cosine,
    Muon,
    OneCycle,
    OptimiserSpec,
    Plateau,
    ScheduleSpec,
    Training,
)

__all__ = [
    "SGD", "AdamW", "Alibi", "Augment", "BlocksModelSpec", "CNNModel", "Columns", "Constant", "Cosine",
    "Coupled", "GridLearned",
    "GridPositionSpec", "GridRotary", "GridSinusoidal", "GridStart", "Interpolated",
    "Learned", "MLPModel", "ModelSpec", "Muon", "NoPositions", "OneCycle", "OptimiserSpec",
    "PatchAttentionModel", "PatchPositionSpec", "PatchSeq2SeqModel", "Plateau", "Pooling", "PositionSpec",
    "Randomised", "Relative", "Rotary", "ScheduleSpec", "Seq2SeqModel", "Sinusoidal", "SinusoidalStart",
    "Spec", "Split", "StartSpec", "Task", "Tokens", "TokensModel", "Training", "UniformStart",
    "VitModel", "XavierStart", "ZeroStart", "from_json", "read_variant", "require", "spec_hash", "to_json",
    "variants", "whole_key", "with_settings", "write_variant",
]  # fmt: skip
