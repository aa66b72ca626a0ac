"""Named specs: ``attnlab train grids --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.problems.digits.presets import ALTERED, MUON, REFERENCE_ADAMW
from attnlab.problems.grids.task import Grids
from attnlab.specs import GridSinusoidal, Learned, PatchSeq2SeqModel, Spec

PRESETS: dict[str, Spec] = {
    # The decoder sees every patch, and every epoch has grids of its own. Each digit comes by more
    # often than in digits/vit, so some of what the model computes is dropped.
    "default": Spec(
        task=Grids(train=30_000, valid=6_000, fresh=True, scaling="standard", augment=ALTERED),
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
        training=replace(MUON, epochs=12),
    ),
    # The encoder-decoder of the reference reports, which read 87.5% of its grids.
    "reference": Spec(
        task=Grids(train=30_000),
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
        training=REFERENCE_ADAMW,
    ),
}
