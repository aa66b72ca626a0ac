"""Blocks as model specs describe them: the parts that encoder-decoders and classifiers share."""

from collections.abc import Iterator

from torch import nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import DecoderBlock, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from attnlab.positions import ONE_BY_ONE, Positions, build_positions
from attnlab.specs import BlocksModelSpec, Columns


class Parts:
    """Makes the parts of one model in the order of computation."""

    def __init__(
        self,
        spec: BlocksModelSpec,
        *,
        window: int = 0,
        log_scale: int = 0,
        counted: Columns = ONE_BY_ONE,
    ) -> None:
        self._spec = spec
        self._counted = counted
        self._head_width = spec.width // spec.heads
        self._counts: Iterator[int] = iter(spec.head_counts or (spec.heads,) * spec.attentions)
        self._own: Iterator[int] = iter(spec.head_indices)
        self._window, self._log_scale = window, log_scale

    def encoder(self, layers: int) -> list[EncoderBlock]:
        return [
            EncoderBlock(attention=self.attention(), feed=self.feed(), residual=self.residual)
            for _ in range(layers)
        ]

    def decoder(self, layers: int) -> list[DecoderBlock]:
        return [
            DecoderBlock(
                attention=self.attention(), cross=self.attention(), feed=self.feed(), residual=self.residual
            )
            for _ in range(layers)
        ]

    def positions(self, **grid: int) -> Positions:
        spec = self._spec
        return build_positions(
            spec.positions,
            width=spec.width,
            head_width=self._head_width,
            counted=self._counted,
            **grid,
        )

    def attention(self) -> Attention | NoHeads:
        """The next attention, with as many heads as are left of it."""
        count = next(self._counts)
        if count == 0:
            return NoHeads(width=self._spec.width)
        own = [next(self._own) for _ in range(count)] if self._spec.head_indices else None
        return Attention(
            width=self._spec.width,
            heads=count,
            head_width=self._head_width,
            window=self._window,
            log_scale=self._log_scale,
            own=own,
        )

    def feed(self) -> FeedForward:
        activation = nn.ReLU() if self._spec.activation == "relu" else nn.GELU()
        return FeedForward(width=self._spec.width, hidden=self._spec.hidden, activation=activation)

    def residual(self) -> Residual:
        norm, dropout = nn.LayerNorm(self._spec.width), self._spec.dropout
        kind = PreNorm if self._spec.norm == "pre" else PostNorm
        return kind(norm=norm, dropout=dropout)

    def closing_norm(self) -> nn.Module:
        """What closes a stack: post-norm stacks are closed already."""
        return nn.LayerNorm(self._spec.width) if self._spec.norm == "pre" else nn.Identity()
