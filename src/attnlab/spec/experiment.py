"""The whole of an experiment, and the hash that identifies it."""

import hashlib
import json
from dataclasses import dataclass, field

from attnlab.spec.codec import from_json, to_json
from attnlab.spec.models import ModelSpec, Seq2SeqModel
from attnlab.spec.rules import require
from attnlab.spec.tasks import AdditionTask, TaskSpec
from attnlab.spec.training import Training


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: the task, the model, how it is trained, and the seed of all chance in it."""

    task: TaskSpec = field(default_factory=AdditionTask)
    model: ModelSpec = field(default_factory=Seq2SeqModel)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**31, "seed", self.seed, "from 0 to 2147483647")


def spec_hash(spec: Spec) -> str:
    """Twelve hexadecimal digits that stay the same for the same experiment."""
    # Reading the JSON back turns whole numbers in float fields into floats, so that 1 and 1.0 agree.
    canonical = json.dumps(to_json(from_json(Spec, to_json(spec))), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
