"""Named specs. ``attnlab train TASK --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.errors import SpecError, nearest
from attnlab.spec import (
    SGD,
    AdamW,
    AdditionTask,
    Augment,
    CNNModel,
    Constant,
    Cosine,
    DigitsTask,
    GridSinusoidal,
    GridStart,
    GridsTask,
    Learned,
    MLPModel,
    Muon,
    OneCycle,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Plateau,
    Relative,
    Rotary,
    Seq2SeqModel,
    SortingTask,
    Spec,
    TokensModel,
    Training,
    VitModel,
)

_PLAIN_SGD = Training(
    epochs=5, batch=32, lr=0.01, optimiser=SGD(), schedule=Constant(), clip=0.0, watch="test"
)
_REFERENCE_ADAMW = Training(
    epochs=8, batch=128, lr=3e-4, optimiser=AdamW(weight_decay=0.01), schedule=Constant(), clip=0.0
)
_MUON = Training(
    epochs=16,
    batch=128,
    lr=3e-3,
    optimiser=Muon(),
    schedule=OneCycle(),
    ema=0.999,
    smoothing=0.1,
    precision="auto",
)
_ALTERED = Augment(shift=2.0, rotate=10.0, scale=0.1, elastic=1.0)
_ENDLESS_LISTS = SortingTask(
    negatives="swap=0.5,reference=0.5", sampling="ranges", train=12_800, fresh=True
)
_SORTER = TokensModel(width=64, layers=2, hidden=256, pooling="lowest")
_TUNED_SGD = replace(_PLAIN_SGD, lr=0.2, schedule=Cosine(warmup=0.02), watch="valid")

_QUICK_ADDER = Spec(
    task=AdditionTask(order="least", sampling="balanced", train=20_000),
    model=Seq2SeqModel(positions=Learned(length=32, scale=1.0)),
    training=Training(
        epochs=3, batch=128, lr=3e-3, optimiser=AdamW(beta2=0.99, weight_decay=0.3), schedule=OneCycle()
    ),
)

PRESETS: dict[str, dict[str, Spec]] = {
    "addition": {
        # The best recipe for the reference's architecture: answers start with the ones, as one adds
        # by hand, and training pairs give tiny operands and rippling carries their share.
        "default": replace(_QUICK_ADDER, training=replace(_QUICK_ADDER.training, batch=32, lr=2e-3)),
        # The same in a quarter of the steps, which misses a sum of the million now and then.
        "quick": _QUICK_ADDER,
        # The model of the reference reports, trained correctly: start token, a loss over every
        # digit, real greedy decoding.
        "reference": Spec(
            task=AdditionTask(operands="reference", order="most", sampling="uniform", train=10_000),
            model=Seq2SeqModel(norm="post", dropout=0.1),
            training=Training(
                epochs=50, batch=64, lr=1e-3, optimiser=AdamW(), schedule=Plateau(), clip=1.0
            ),
        ),
    },
    "digits": {
        # The same architecture and budget, with pixels, a start and a learning rate that suit it.
        "default": Spec(
            task=DigitsTask(scaling="signed"),
            model=PatchAttentionModel(width=64, hidden=128, positions=GridStart(), gain=1.5),
            training=_TUNED_SGD,
            engine="explicit",
        ),
        "small": Spec(
            task=DigitsTask(scaling="signed"),
            model=PatchAttentionModel(positions=GridStart(), gain=1.5),
            training=_TUNED_SGD,
            engine="explicit",
        ),
        # The one-head classifier that stayed at 38%, as it was: test accuracy logged after each epoch.
        "patch-attention": Spec(task=DigitsTask(), model=PatchAttentionModel(), training=_PLAIN_SGD),
        # The two plain networks it was compared with, trained by the same loop.
        "mlp": Spec(task=DigitsTask(), model=MLPModel(), training=_PLAIN_SGD),
        "cnn": Spec(task=DigitsTask(), model=CNNModel(), training=_PLAIN_SGD),
        # A small pre-norm transformer behind five convolutions; images are altered anew at each step.
        "vit": Spec(
            task=DigitsTask(scaling="standard", augment=_ALTERED),
            model=VitModel(stem="conv", width=64, heads=4, layers=4, hidden=256, activation="gelu"),
            training=_MUON,
        ),
        # The vision transformer of the reference reports, which reached 97.57%; a tenth of its training
        # images is held out here, so that choices need no test images.
        "vit-reference": Spec(
            task=DigitsTask(),
            model=VitModel(
                norm="post", positions=Learned(length=50, scale=0.0), pooling="cls", dropout=0.1
            ),
            training=_REFERENCE_ADAMW,
        ),
    },
    "grids": {
        # The decoder sees every patch, and every epoch has grids of its own. Each digit comes by more
        # often than in digits/vit, so some of what the model computes is dropped.
        "default": Spec(
            task=GridsTask(train=30_000, valid=6_000, fresh=True, scaling="standard", augment=_ALTERED),
            model=PatchSeq2SeqModel(
                patch=14,
                stem="conv",
                width=96,
                heads=6,
                encoder_layers=4,
                hidden=384,
                activation="gelu",
                positions=GridSinusoidal(),
                dropout=0.1,
            ),
            training=replace(_MUON, epochs=12),
        ),
        # The encoder-decoder of the reference reports, which read 87.5% of its grids.
        "reference": Spec(
            task=GridsTask(train=30_000),
            model=PatchSeq2SeqModel(
                width=256,
                heads=8,
                encoder_layers=6,
                decoder_layers=6,
                hidden=1024,
                norm="post",
                positions=Learned(length=64, scale=0.0),
                bridge="cells",
                dropout=0.1,
            ),
            training=_REFERENCE_ADAMW,
        ),
    },
    "sorting": {
        # Tokens see their neighbours, each says whether it stands right, and the worst decides.
        "default": Spec(
            task=_ENDLESS_LISTS,
            model=replace(_SORTER, positions=Rotary(), window=2),
            training=Training(epochs=24, batch=128, lr=5e-3, optimiser=Muon(), schedule=OneCycle()),
        ),
        # Attention to all tokens: trained biases for coarse distances, sharpened by log n. Every token can
        # find the place that is wrong, so that a mean over tokens does not thin out. Its lists often ask
        # for neighbours that lie one apart, as they do in long lists.
        "global": Spec(
            task=replace(_ENDLESS_LISTS, sampling="bands"),
            model=replace(
                _SORTER,
                positions=Relative(buckets=8, distance=4, scale=1.0),
                log_scale=12,
                pooling="mean",
            ),
            training=Training(epochs=32, batch=128, lr=5e-3, optimiser=Muon(rest=4.0), schedule=OneCycle()),
        ),
        # The model of the reference reports on their kind of data.
        "reference": Spec(
            task=SortingTask(),
            model=TokensModel(norm="post", dropout=0.1, readout="mlp"),
            training=Training(
                epochs=50, batch=64, lr=1e-3, optimiser=AdamW(), schedule=Plateau(), clip=1.0
            ),
        ),
    },
}


def preset(task: str, name: str) -> Spec:
    """The preset ``name`` of ``task``."""
    if task not in PRESETS:
        raise SpecError(f"{task!r} is no known task{nearest(task, PRESETS)}")
    if name not in PRESETS[task]:
        raise SpecError(f"{name!r} is no preset of {task}{nearest(name, PRESETS[task])}")
    return PRESETS[task][name]
