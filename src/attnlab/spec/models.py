"""Model specs: the shape of a model and the parts it is built from."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from attnlab.spec.codec import later
from attnlab.spec.images import ImageModelSpec
from attnlab.spec.positions import PositionSpec, Sinusoidal, require_lasting
from attnlab.spec.rules import require
from attnlab.spec.stacks import check_stack
from attnlab.spec.tokens import TokensModel


@dataclass(frozen=True, kw_only=True)
class Seq2SeqModel:
    """Encoder-decoder: tokens in, tokens out."""

    kind: ClassVar[str] = "seq2seq"

    width: int = 128
    """D, the width of the residual stream."""
    heads: int = 4
    """H, heads in each attention; must divide the width."""
    encoder_layers: int = 2
    decoder_layers: int = 2
    hidden: int = 512
    """Width of the feed-forward layer."""
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum."""
    positions: PositionSpec = field(default_factory=Sinusoidal)
    dropout: float = 0.0
    head_counts: tuple[int, ...] = later(())
    """Heads that pruning left, an attention each in the order of computation: first those of the encoder,
    then of each decoder layer self and cross. A head keeps the width that ``heads`` gives it. Empty: all.
    """
    head_indices: tuple[int, ...] = later(())
    """Which heads these were before pruning, where positions give each head a bias of its own."""

    def __post_init__(self) -> None:
        for name in ("encoder_layers", "decoder_layers"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        check_stack(self)
        require_lasting(self.positions)

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.encoder_layers + 2 * self.decoder_layers


ModelSpec = Seq2SeqModel | TokensModel | ImageModelSpec
