"""A model and a training that suit a task of which nothing is known but what goes in and comes out."""

import math

from attnlab.checks import check_task
from attnlab.registry import source_of
from attnlab.spec import (
    AdamW,
    Learned,
    ModelSpec,
    OneCycle,
    PatchSeq2SeqModel,
    Seq2SeqModel,
    Spec,
    Task,
    TokensModel,
    Training,
    VitModel,
)

BATCH, STEPS = 64, 3000


def default_spec(task: Task) -> Spec:
    """Learns most small tasks in a few minutes on two cores; a task that breaks a rule is refused."""
    check_task(task)
    training = Training(
        epochs=math.ceil(STEPS * BATCH / len(task.splits(0).train)),
        batch=BATCH,
        lr=2e-3,
        optimiser=AdamW(beta2=0.99, weight_decay=0.1),
        schedule=OneCycle(),
    )
    source = source_of(task.kind)
    return Spec(task=task, model=_model(task), training=training, source=source.sha256 if source else "")


def _model(task: Task) -> ModelSpec:
    if task.images:
        return (
            VitModel(width=64, hidden=256)
            if task.start is None
            else PatchSeq2SeqModel(width=64, hidden=256)
        )
    places = Learned(length=max(32, task.input_length + 1, task.target_length), scale=1.0)
    if task.start is None:
        return TokensModel(width=64, hidden=256, layers=3, pooling="cls", positions=places)
    return Seq2SeqModel(width=64, hidden=256, positions=places)
