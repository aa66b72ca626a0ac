"""Model specs: the shape of a model and the parts it is built from."""

from dataclasses import dataclass, field
from typing import ClassVar

from attnlab.spec.positions import PositionSpec, Sinusoidal, require_lasting
from attnlab.spec.rules import require
from attnlab.spec.stacks import StackSpec, check_stack
from attnlab.spec.tokens import TokensModel
from attnlab.spec.vit import ImageModelSpec, PatchSeq2SeqModel, VitModel
from attnlab.spec.words import write_variant


@dataclass(frozen=True, kw_only=True)
class Seq2SeqModel(StackSpec):
    """Encoder-decoder: tokens in, tokens out."""

    kind: ClassVar[str] = "seq2seq"

    encoder_layers: int = 2
    decoder_layers: int = 2
    positions: PositionSpec = field(default_factory=Sinusoidal)

    def __post_init__(self) -> None:
        for name in ("encoder_layers", "decoder_layers"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        check_stack(self)
        require_lasting(self.positions)

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.encoder_layers + 2 * self.decoder_layers

    @property
    def stack_positions(self) -> dict[str, str]:
        return dict.fromkeys(("source", "target"), write_variant(self.positions))


ModelSpec = Seq2SeqModel | TokensModel | PatchSeq2SeqModel | ImageModelSpec

BlocksModelSpec = Seq2SeqModel | TokensModel | VitModel | PatchSeq2SeqModel
"""Models of transformer blocks: what ``attnlab.models.parts`` builds, and heads can be taken out of."""
