"""Named specs: ``attnlab train sorting --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.problems.sorting.task import Sorting
from attnlab.specs import AdamW, Muon, OneCycle, Plateau, Relative, Rotary, Spec, TokensModel, Training

_ENDLESS_LISTS = Sorting(negatives="swap=0.5,reference=0.5", sampling="ranges", train=12_800, fresh=True)
_SORTER = TokensModel(width=64, layers=2, hidden=256, pooling="lowest")

PRESETS: dict[str, Spec] = {
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
        task=Sorting(),
        model=TokensModel(norm="post", dropout=0.1, readout="mlp"),
        training=Training(epochs=50, batch=64, lr=1e-3, optimiser=AdamW(), schedule=Plateau(), clip=1.0),
    ),
}
