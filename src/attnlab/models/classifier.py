"""The classifier: tokens in, one class out.

x      = encoder(embed(input))      (B, T, D)
logits = readout(pool(norm(x)))     (B, V)
"""

from collections.abc import Sequence
from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from attnlab.blocks import EncoderBlock
from attnlab.positions import Positions


@final
class Classifier(nn.Module):
    """``embed`` makes tokens of an input, ``pool`` one vector of all tokens."""

    def __init__(
        self,
        *,
        embed: nn.Module,
        positions: Positions,
        encoder: Sequence[EncoderBlock],
        norm: nn.Module,
        pool: nn.Module,
        readout: nn.Linear,
    ) -> None:
        super().__init__()
        self.embed = embed
        self.positions = positions
        self.encoder = nn.ModuleList(encoder)
        self.norm = norm
        self.pool = pool
        self.readout = readout

    def forward(self, given: Tensor) -> Float[Tensor, "B V"]:
        """Logits of every class."""
        x = self.embed(given)
        placed = self.positions.at(x.shape[1], x)
        for block in self.encoder:
            x = block(x, placed=placed)
        return self.readout(self.pool(self.norm(x)))
