"""Patch attention: one attention between the patches of an image.

As it stands, with T tokens of width D:

    x      = relu(patches W + b + pos)                      (B, T, D)
    z      = softmax(q k^T / sqrt(D)) v                     (B, T, D), one head
    y      = relu(z W_1 + b_1) W_2 + b_2                    (B, T, D)
    logits = mean over tokens of y, times W_c, plus b_c     (B, V)

There is no output projection, no residual sum and no layer norm, so a token's own content reaches the end
only through the attention. While the pattern is uniform, every token gets the same mean of v, and
positions cancel: the model sees a bag of patches.
"""

from torch import nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import EncoderBlock, FeedForward, NoSum, PreNorm, Residual
from attnlab.models.classifier import Classifier
from attnlab.models.images import ImageShape, PatchTokens
from attnlab.pooling import MeanPool
from attnlab.positions import Positions, start_positions
from attnlab.spec import PatchAttentionModel


def build_patch_attention(spec: PatchAttentionModel, *, vocabulary: int, image: ImageShape) -> Classifier:
    """The model of ``spec``; weights are drawn later, positions start as the spec says."""
    width = spec.width

    def norm() -> nn.Module:
        return nn.LayerNorm(width) if spec.norm else nn.Identity()

    def residual() -> Residual:
        return PreNorm(norm=norm(), dropout=0.0) if spec.residual else NoSum(norm=norm(), dropout=0.0)

    (heads,) = spec.head_counts or (spec.heads,)
    attention = (
        Attention(
            width=width,
            heads=heads,
            head_width=width // spec.heads,
            output=None if spec.projection else nn.Identity(),
        )
        if heads
        else NoHeads(width=width)
    )
    feed = FeedForward(width=width, hidden=spec.hidden, activation=nn.ReLU())
    return Classifier(
        embed=PatchTokens(
            patch=spec.patch,
            width=width,
            channels=image[0],
            positions=start_positions(spec.positions, tokens=spec.tokens(*image[1:]), width=width),
        ),
        positions=Positions(),
        encoder=[EncoderBlock(attention=attention, feed=feed, residual=residual)],
        norm=norm(),
        pool=MeanPool(),
        readout=nn.Linear(width, vocabulary),
    )
