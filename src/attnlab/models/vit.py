"""Transformers over patches: the vision transformer, and the encoder-decoder that reads grids.

A patch of P pixels becomes a token by one of two stems:

    linear   patch W + b                               (Dosovitskiy et al., 2021)
    conv     convolutions with ReLU: those of stride 2 and three that keep the size behind them (one alone
             that keeps the size where the side is odd), then one whose stride is the rest of the patch's
             side, then a linear map of each token
             (Xiao et al., "Early Convolutions Help Transformers See Better", 2021, without batch norm)
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.models.classifier import Classifier, Embed
from attnlab.models.images import ImageShape, cut_patches
from attnlab.models.parts import Parts
from attnlab.models.seq2seq import Seq2Seq
from attnlab.pooling import build_pool
from attnlab.positions import LearnedTable, Positions
from attnlab.specs import PatchSeq2SeqModel, VitModel

_FRONT_SCALE = 0.02  # deviation of the first values of what stands in front, as in the paper
_KEEPING = 3  # convolutions of a stem that keep the size, behind those that halve the image


@final
class LinearStem(nn.Module):
    """patch W + b"""

    def __init__(self, *, patch: int, width: int, channels: int = 1) -> None:
        super().__init__()
        self.patch = patch
        self.linear = nn.Linear(channels * patch * patch, width)

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B T D"]:
        return self.linear(cut_patches(images, self.patch))


@final
class ConvStem(nn.Module):
    """Convolutions whose strides multiply to the patch's side, then a linear map (Xiao et al., 2021).

    Each reaches beyond what it replaces, so that patches overlap. Channels double with every stride above
    1. A first one of stride 2 looks at 5 x 5 pixels and leaves a quarter of them to all that follows.
    """

    def __init__(self, *, patch: int, width: int, channels: int = 1) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before, strides = channels, stem_strides(patch)
        for place, stride in enumerate(strides):
            after = max(1, width >> sum(each > 1 for each in strides[place + 1 :]))
            kernel = 3 if stride == 1 or (stride == 2 and place > 0) else max(5, stride + 2)
            around = (kernel - stride + 1) // 2
            layers += [nn.Conv2d(before, after, kernel, stride=stride, padding=around), nn.ReLU()]
            before = after
        self.convolutions = nn.Sequential(*layers)
        for weight in self.convolutions.parameters():
            if weight.ndim == 4:  # channels beside each other, as convolutions compute
                weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        self.linear = nn.Linear(before, width)

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B T D"]:
        # One channel is laid out like all that follow.
        last = images if images.ndim == 4 else images[..., None].movedim(-1, 1)
        return self.linear(self.convolutions(last).flatten(2).transpose(1, 2))


def stem_strides(patch: int) -> list[int]:
    """Strides that multiply to the side of a patch: 4 is 2 x 1 x 1 x 2 x 1, 14 is 2 x 1 x 1 x 1 x 7."""
    halvings = 0
    while patch % 2 == 0:
        halvings, patch = halvings + 1, patch // 2
    strides = [] if halvings else [1]
    for place in range(halvings):
        strides += [2, *(1 for _ in range(place, _KEEPING, halvings))]
    return [*strides, patch] if patch > 1 else strides


@final
class PatchEmbed(Embed):
    """A token for each patch; ``front`` trained tokens stand before all others."""

    def __init__(self, *, stem: nn.Module, patch: int, width: int, front: int = 0) -> None:
        super().__init__()
        self.patch = patch
        self.stem = stem
        self.front = nn.Parameter(torch.randn(front, width) * _FRONT_SCALE) if front else None

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B T D"]:
        x = self.stem(images)
        if self.front is None:
            return x
        return torch.cat((self.front.expand(x.shape[0], -1, -1), x), dim=1)

    def mask(self, given: Float[Tensor, "B *C Y X"]) -> None:
        """No image has padding."""


@final
class CellMeans(nn.Module):
    """The mean over the patches of each cell, ``across`` in a row of them: one vector a cell."""

    def __init__(self, *, rows: int, columns: int, across: int) -> None:
        super().__init__()
        self.rows, self.columns, self.across = rows, columns, across

    def forward(self, memory: Float[Tensor, "B S D"]) -> Float[Tensor, "B C D"]:
        count, patches, width = memory.shape
        down = patches // (self.rows * self.columns * self.across)
        cells = memory.reshape(count, self.rows, down, self.columns, self.across, width)
        return cells.mean(dim=(2, 4)).flatten(1, 2)


def build_vit(spec: VitModel, *, vocabulary: int, image: ImageShape) -> Classifier:
    """The model of ``spec``; weights are drawn later."""
    parts, (channels, height, width) = Parts(spec), image
    rows, columns = height // spec.patch, width // spec.patch
    return Classifier(
        embed=_embed(spec, channels, front=spec.front),
        positions=parts.positions(rows=rows, columns=columns, front=spec.front),
        encoder=parts.encoder(spec.layers),
        norm=parts.closing_norm(),
        pool=build_pool(spec.pooling, spec.width),
        readout=nn.Linear(spec.width, vocabulary),
        dropout=spec.dropout,
    )


def build_patch_seq2seq(spec: PatchSeq2SeqModel, *, vocabulary: int, cell: ImageShape) -> Seq2Seq:
    """The model of ``spec`` for images of such cells; weights are drawn later."""
    parts, (channels, height, width) = Parts(spec), cell
    down, across = height // spec.patch, width // spec.patch
    cells = CellMeans(rows=spec.rows, columns=spec.columns, across=across)
    places = LearnedTable(width=spec.width, length=spec.cells, scale=1.0)  # as large as the tokens' vectors
    return Seq2Seq(
        source_embed=_embed(spec, channels),
        source_positions=parts.positions(rows=spec.rows * down, columns=spec.columns * across),
        encoder=parts.encoder(spec.encoder_layers),
        encoder_norm=parts.closing_norm(),
        bridge=None if spec.bridge == "memory" else cells,
        target_embed=nn.Embedding(vocabulary, spec.width),
        target_positions=Positions(add=places),
        decoder=parts.decoder(spec.decoder_layers),
        decoder_norm=parts.closing_norm(),
        readout=nn.Linear(spec.width, vocabulary),
        dropout=spec.dropout,
    )


def _embed(spec: VitModel | PatchSeq2SeqModel, channels: int, *, front: int = 0) -> PatchEmbed:
    kind = LinearStem if spec.stem == "linear" else ConvStem
    stem = kind(patch=spec.patch, width=spec.width, channels=channels)
    return PatchEmbed(stem=stem, patch=spec.patch, width=spec.width, front=front)
