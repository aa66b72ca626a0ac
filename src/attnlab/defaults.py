"""A model and a training that suit a task of which nothing is known but what goes in and comes out."""

import math

from attnlab.checks import check_task
from attnlab.registry import source_of
from attnlab.spec import (
    AdamW,
    Learned,
    ModelSpec,
    OneCycle,
    Seq2SeqModel,
    Spec,
    Task,
    TokensModel,
    Training,
)

BATCH = 64
STEPS, LONG = 3_000, 15_000
"""Steps at most. Tokens to a class get more: such steps are cheap, and a sum modulo 10 needs them."""
SURE = 600
"""Steps during which every validation example is right, before training ends."""


def default_spec(task: Task) -> Spec:
    """Learns most small tasks in three minutes on two cores; a task that breaks a rule is refused."""
    check_task(task)
    long = task.start is None and not task.images
    epoch = math.ceil(len(task.splits(0).train) / BATCH)  # in steps
    training = Training(
        epochs=math.ceil((LONG if long else STEPS) / epoch),
        batch=BATCH,
        lr=2e-3,
        optimiser=AdamW(beta2=0.99, weight_decay=0.1),
        schedule=OneCycle(peak=0.05) if long else OneCycle(),
        perfect=math.ceil(SURE / epoch),
    )
    source = source_of(task.kind)
    return Spec(
        task=task, model=task.default_model(), training=training, source=source.sha256 if source else ""
    )


def token_model(task: Task) -> ModelSpec:
    """For tokens, to a class or to a sequence."""
    places = Learned(length=max(32, task.input_length + 1, task.target_length), scale=1.0)
    if task.start is None:
        return TokensModel(width=64, hidden=256, layers=3, pooling="cls", positions=places)
    return Seq2SeqModel(width=64, hidden=256, positions=places)
