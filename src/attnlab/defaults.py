"""A model and a training that suit a task of which nothing is known but what goes in and comes out."""

import math

from attnlab import specs
from attnlab.checks import check_task
from attnlab.registry import source_of

BATCH = 64
STEPS, LONG = 3_000, 15_000
"""Steps at most. Tokens to a class get more: such steps are cheap, and a sum modulo 10 needs them."""
SURE = 600
"""Steps during which every validation example is right, before training ends."""


def default_spec(task: specs.Task) -> specs.Spec:
    """Learns most small tasks in three minutes on two cores; a task that breaks a rule is refused."""
    check_task(task)
    long = task.start is None and not task.images
    epoch = math.ceil(len(task.splits(0).train) / BATCH)  # in steps
    training = specs.Training(
        epochs=math.ceil((LONG if long else STEPS) / epoch),
        batch=BATCH,
        lr=2e-3,
        optimiser=specs.AdamW(beta2=0.99, weight_decay=0.1),
        schedule=specs.OneCycle(peak=0.05) if long else specs.OneCycle(),
        perfect=math.ceil(SURE / epoch),
    )
    source = source_of(task.kind)
    return specs.Spec(
        task=task, model=task.default_model(), training=training, source=source.sha256 if source else ""
    )


def token_model(task: specs.Task) -> specs.ModelSpec:
    """For tokens, to a class or to a sequence."""
    places = specs.Learned(length=max(32, task.input_length + 1, task.target_length), scale=1.0)
    if task.start is None:
        return specs.TokensModel(width=64, hidden=256, layers=3, pooling="cls", positions=places)
    return specs.Seq2SeqModel(width=64, hidden=256, positions=places)
