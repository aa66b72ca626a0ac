"""Named specs: ``attnlab train addition --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.problems.addition.task import Addition
from attnlab.specs import AdamW, Coupled, Learned, OneCycle, Plateau, Seq2SeqModel, Spec, Training

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
    # Learned from 1 to 10 digits, and right at 200: tokens stand at their column of the sum, and
    # attention sees the columns beside its own (docs/explanation/studies/addition-length.md).
    "long": Spec(
        task=Addition(digits=10, shortest=1, order="least", sampling="balanced", train=6_400),
        model=Seq2SeqModel(
            width=64,
            hidden=256,
            encoder_layers=1,
            positions=Coupled(inner="relative", window=1),
        ),
        training=Training(
            epochs=20,
            batch=64,
            lr=2e-3,
            optimiser=AdamW(beta2=0.99, weight_decay=0.1),
            schedule=OneCycle(),
            clip=1.0,
        ),
    ),
    # The model of the reference reports, trained correctly: start token, a loss over every
    # digit, real greedy decoding.
    "reference": Spec(
        task=Addition(operands="reference", order="most", sampling="uniform", train=10_000),
        model=Seq2SeqModel(norm="post", dropout=0.1),
        training=Training(epochs=50, batch=64, lr=1e-3, optimiser=AdamW(), schedule=Plateau(), clip=1.0),
    ),
}
