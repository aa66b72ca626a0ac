"""Named specs: ``attnlab train addition --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.problems.addition.task import Addition
from attnlab.specs import AdamW, Learned, OneCycle, Plateau, Seq2SeqModel, Spec, Training

_QUICK_ADDER = Spec(
    task=Addition(order="least", sampling="balanced", train=20_000),
    model=Seq2SeqModel(positions=Learned(length=32, scale=1.0)),
    training=Training(
        epochs=3, batch=128, lr=3e-3, optimiser=AdamW(beta2=0.99, weight_decay=0.3), schedule=OneCycle()
    ),
)

PRESETS: dict[str, Spec] = {
    # The best recipe for the reference's architecture: answers start with the ones, as one adds
    # by hand, and training pairs give tiny operands and rippling carries their share.
    "default": replace(_QUICK_ADDER, training=replace(_QUICK_ADDER.training, batch=32, lr=2e-3)),
    # The same in a quarter of the steps, which misses a sum of the million now and then.
    "quick": _QUICK_ADDER,
    # The model of the reference reports, trained correctly: start token, a loss over every
    # digit, real greedy decoding.
    "reference": Spec(
        task=Addition(operands="reference", order="most", sampling="uniform", train=10_000),
        model=Seq2SeqModel(norm="post", dropout=0.1),
        training=Training(epochs=50, batch=64, lr=1e-3, optimiser=AdamW(), schedule=Plateau(), clip=1.0),
    ),
}
