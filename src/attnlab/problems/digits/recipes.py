"""What trainings over images of digits share."""

from attnlab.spec import AdamW, Augment, Constant, Muon, OneCycle, Training

REFERENCE_ADAMW = Training(
    epochs=8, batch=128, lr=3e-4, optimiser=AdamW(weight_decay=0.01), schedule=Constant(), clip=0.0
)
MUON = Training(
    epochs=16,
    batch=128,
    lr=3e-3,
    optimiser=Muon(),
    schedule=OneCycle(),
    ema=0.999,
    smoothing=0.1,
    precision="auto",
)
ALTERED = Augment(shift=2.0, rotate=10.0, scale=0.1, elastic=1.0)
