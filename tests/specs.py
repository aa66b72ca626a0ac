"""Random valid specs, for hypothesis; and those that have names."""

from typing import Any, get_args

from hypothesis import strategies as st

from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.words import Sampling
from attnlab.registry import find_task, task_names
from attnlab.specs import (
    SGD,
    AdamW,
    Alibi,
    Augment,
    Constant,
    Cosine,
    Coupled,
    Interpolated,
    Learned,
    Muon,
    NoPositions,
    OneCycle,
    PatchPositionSpec,
    PatchSeq2SeqModel,
    Plateau,
    Pooling,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Seq2SeqModel,
    Sinusoidal,
    Spec,
    TokensModel,
    Training,
    VitModel,
    variants,
)
from attnlab.specs.positions import differs_by_head

counts = st.integers(1, 10**6)
few = st.integers(1, 15)  # together they fit into the 45 pairs of one digit without leading zero
shares = st.floats(0, 1, exclude_max=True)
inner = st.floats(0, 1, exclude_min=True, exclude_max=True)
closed = st.floats(0, 1)
sizes = st.floats(0, 1e9)
bases = st.floats(1, 1e9, exclude_min=True)

tasks = st.builds(
    Addition,
    digits=st.integers(1, 12),
    operands=st.sampled_from(("full", "reference")),
    order=st.sampled_from(("most", "least")),
    sampling=st.sampled_from(("uniform", "balanced")),
    train=few,
    valid=few,
    test=few,
)
lasting: st.SearchStrategy[PositionSpec] = st.one_of(
    st.builds(NoPositions),
    st.builds(Sinusoidal, base=bases),
    st.builds(Learned, length=counts, scale=sizes),
    st.builds(Rotary, base=bases),
    st.builds(Alibi),
    st.builds(Relative, buckets=few.map(lambda n: 2 * n + 2), distance=st.integers(10, 99), scale=sizes),
    st.builds(
        Coupled,
        inner=st.sampled_from(("learned", "sinusoidal", "rotary", "relative")),
        limit=counts,
        buckets=few.map(lambda n: 2 * n + 2),
        distance=st.integers(10, 99),
        window=few,
        scale=sizes,
    ),
)
positions: st.SearchStrategy[PositionSpec] = st.one_of(
    lasting,
    st.builds(Randomised, inner=st.sampled_from(("sinusoidal", "learned", "rotary")), limit=counts),
    st.builds(Interpolated, inner=st.sampled_from(("sinusoidal", "rotary")), trained=counts),
)

PRESETS = {
    name: task.presets()
    for name in task_names()
    if (task := find_task(name)).__module__.startswith("attnlab.")
}
"""Of the tasks that come with attnlab; those that other tests register may draw for seconds."""


@st.composite
def models(draw: st.DrawFn) -> Seq2SeqModel:
    where = draw(lasting)
    heads = draw(st.integers(1, 13))
    layers = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    pruned = st.tuples(*[st.integers(0, heads)] * (layers[0] + 2 * layers[1]))
    left = draw(st.one_of(st.just(()), pruned))
    own_bias = differs_by_head(where)
    paired = isinstance(where, Rotary | Sinusoidal) or (
        isinstance(where, Coupled) and where.inner in ("rotary", "sinusoidal")
    )
    head_width = draw(st.integers(1, 17)) * (2 if paired else 1)
    return Seq2SeqModel(
        width=heads * head_width,
        heads=heads,
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        head_counts=left,
        head_indices=tuple(n for count in left for n in range(count)) if own_bias else (),
        hidden=draw(counts),
        activation=draw(st.sampled_from(("relu", "gelu"))),
        norm=draw(st.sampled_from(("pre", "post"))),
        positions=where,
        dropout=draw(shares),
    )


optimisers = st.one_of(
    st.builds(AdamW, beta1=shares, beta2=shares, weight_decay=sizes),
    st.builds(SGD, momentum=shares, weight_decay=sizes),
    st.builds(Muon, momentum=shares, weight_decay=sizes, rest=inner, beta1=shares, beta2=shares),
)
schedules = st.one_of(
    st.builds(Constant, warmup=shares),
    st.builds(Cosine, warmup=shares, floor=closed),
    st.builds(OneCycle, peak=inner, start=closed),
    st.builds(Plateau, factor=inner, patience=counts),
)
trainings = st.builds(
    Training,
    epochs=counts,
    batch=counts,
    lr=st.floats(0, 10, exclude_min=True),
    optimiser=optimisers,
    schedule=schedules,
    clip=sizes,
    ema=shares,
    smoothing=shares,
    patience=st.integers(0, 99),
    threads=st.integers(0, 99),
    snapshots=st.one_of(
        st.just(()),
        st.tuples(st.integers(2, 1000)),
        st.sets(st.integers(0, 10**6), min_size=2, max_size=9).map(lambda steps: tuple(sorted(steps))),
    ),
)
seeds = st.integers(0, 2**31 - 1)
sortings = st.builds(
    Sorting,
    low=st.integers(2, 9),
    high=st.integers(9, 99),
    negatives=st.sampled_from(("swap", "reference", "shuffle", "swap=0.25,shuffle=0.75")),
    sampling=st.sampled_from(get_args(Sampling)),
    train=counts,
    fresh=st.booleans(),
)
readers = st.builds(
    TokensModel,
    width=st.sampled_from((12, 36)),
    heads=st.sampled_from((1, 3)),
    layers=few,
    positions=positions,
    pooling=st.sampled_from(get_args(Pooling)),
    readout=st.sampled_from(("linear", "mlp")),
    window=st.integers(0, 9),
    log_scale=st.sampled_from((0, 2, 16)),
)
limits = st.floats(0, 0.9)
alterations = st.builds(Augment, shift=limits, rotate=limits, scale=limits, elastic=limits)
patched: dict[str, st.SearchStrategy[Any]] = {
    "patch": st.sampled_from((7, 14)),
    "stem": st.sampled_from(("linear", "conv")),
    "width": st.sampled_from((12, 36)),
    "heads": st.sampled_from((1, 3)),
    "positions": st.sampled_from([kind() for kind in variants(PatchPositionSpec).values()]),
    "norm": st.sampled_from(("pre", "post")),
}
digits = st.builds(Digits, train=counts, valid=counts, test=counts, augment=alterations)
vits = st.builds(
    VitModel,
    layers=few,
    pooling=st.sampled_from([word for word in get_args(Pooling) if word != "lowest"]),
    **patched,
)
grids = st.builds(Grids, train=counts, fresh=st.booleans(), augment=alterations)
grid_readers = st.builds(PatchSeq2SeqModel, bridge=st.sampled_from(("memory", "cells")), **patched)
specs = st.one_of(
    st.builds(Spec, task=digits, model=vits, training=trainings, seed=seeds),
    st.builds(Spec, task=grids, model=grid_readers, training=trainings, seed=seeds),
    st.builds(Spec, task=tasks, model=models(), training=trainings, seed=seeds),
    st.builds(Spec, task=sortings, model=readers, training=trainings, seed=seeds),
)
