"""The encoder-decoder (Vaswani et al., 2017): source tokens in, target tokens out.

    memory = bridge(encoder(embed(source)))
    logits = readout(decoder(embed(target so far), memory))

Token t of the target is predicted from the target's tokens before t, the first of which is the start
token, and from the whole source. The bridge is what the decoder sees of the encoder's output: all of it,
unless another is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.attention import Memory, causal, padding_mask
from attnlab.blocks import BlockCache, DecoderBlock, EncoderBlock, KeyMask
from attnlab.errors import LabError
from attnlab.model import Model, Side, Step, closing_streams, greedy, greedy_surely
from attnlab.positions import Placed, Positions
from attnlab.taps import taps


@dataclass(frozen=True, eq=False)
class Encoded:
    """A source as the decoder reads it: which of the memory may be seen, and where its tokens stand.

    ``shift`` is by how much they were moved in training, as the answer is.
    """

    memory: Memory
    visible: KeyMask | None
    placed: Placed
    shift: Int[Tensor, "B 1"] | None


@final
class Seq2Seq(Model):
    """``encoder_norm`` and ``decoder_norm`` close a pre-norm stack; post-norm stacks pass identities.

    Source tokens ``padding`` are seen by no query.
    """

    def __init__(
        self,
        *,
        source_embed: nn.Module,
        padding: int | None = None,
        source_positions: Positions,
        encoder: Sequence[EncoderBlock],
        encoder_norm: nn.Module,
        bridge: nn.Module | None = None,
        target_embed: nn.Module,
        target_positions: Positions,
        decoder: Sequence[DecoderBlock],
        decoder_norm: nn.Module,
        readout: nn.Linear,
        dropout: float,
    ) -> None:
        super().__init__()
        self.source_embed = source_embed
        self.padding = padding
        self.source_positions = source_positions
        self.encoder = nn.ModuleList(encoder)
        self.encoder_norm = encoder_norm
        self.bridge = nn.Identity() if bridge is None else bridge
        self.target_embed = target_embed
        self.target_positions = target_positions
        self.decoder = nn.ModuleList(decoder)
        self.decoder_norm = decoder_norm
        self.readout = readout
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of every next token, given the true tokens before it (teacher forcing)."""
        return self.decode(self.encode(source, answer=target.shape[1]), target)

    def decode(self, read: "Encoded", target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """``forward`` from the memory on."""
        placed, across = self._target_places(read, target.shape[1])
        x = self._embed_target(target, placed)
        visible = causal(target.shape[1], x)
        for block in self.decoder:
            x = block(
                x, read.memory, placed=placed, visible=visible, memory_visible=read.visible, across=across
            )
        return self.readout(self.decoder_norm(x))

    def encode(self, source: Tensor, answer: int = 0) -> "Encoded":
        """What the decoder reads of a source, beside an answer of so many tokens."""
        x, mask = self.source_embed(source), self.input_mask(source)
        lengths = None if mask is None else mask.sum(dim=1)
        shift = self.source_positions.shift(max(x.shape[1], answer), x)
        tokens = None if source.is_floating_point() else source
        placed = self.source_positions.at(x.shape[1], x, lengths, tokens).moved(shift)
        visible = None if mask is None else mask[:, None, None]
        x = self.dropout(placed.embed(x))
        for block in self.encoder:
            x = block(x, placed=placed, visible=visible)
        return Encoded(self.bridge(self.encoder_norm(x)), visible, placed, shift)

    def _target_places(self, read: "Encoded", length: int) -> tuple[Placed, Placed | None]:
        """Where the tokens of an answer stand, and the same beside the source, if that can be compared."""
        placed = self.target_positions.at(length, read.memory).moved(read.shift)
        return placed, placed.across(read.placed) if self.target_positions.couples else None

    @property
    def input_path(self) -> str:
        return "source_embed"

    @property
    def read_path(self) -> str:
        return "decoder_norm"

    def answer(self, source: Tensor, *, start: int | None = None, length: int = 1) -> Int[Tensor, "B T"]:
        """Greedy decoding from the token ``start``."""
        if start is None:
            raise LabError("an encoder-decoder needs a start token to answer")
        return self.greedy(source, start=start, length=length)

    @torch.no_grad()
    def answer_surely(
        self, source: Tensor, *, start: int | None = None, length: int = 1
    ) -> tuple[Int[Tensor, "B T"], Float[Tensor, "B"]]:
        """The same with probabilities, which the logits of decoding tell already."""
        if start is None:
            raise LabError("an encoder-decoder needs a start token to answer")
        token = source.new_full((len(source), 1), start, dtype=torch.long)
        return greedy_surely(self.begin(source), token, length, self.temperature)

    def begin(self, source: Tensor) -> Step:
        """With cached keys and values, unless somebody looks: an edit may differ from place to place, which
        a single token does not know. The source is encoded once.
        """
        read = self.encode(source)
        if any(tap.active for tap in taps(self.decoder).values()):
            return self._whole_steps(read)
        _, across = self._target_places(read, 1)
        caches = [block.open_cache(read.memory, read.visible, across) for block in self._decoder_blocks()]
        places = count()
        return lambda token: self._step(token, read, caches, place=next(places))

    def _whole_steps(self, read: "Encoded") -> Step:
        """The decoder from its first token on for each further token."""
        fed: list[Tensor] = []

        def step(token: Tensor) -> Tensor:
            fed.append(token)
            return self.decode(read, torch.cat(fed, dim=1))[:, -1:]

        return step

    def early_streams(self) -> list[str]:
        return closing_streams(self.decoder, "decoder")

    def early(self, stream: Float[Tensor, "B T D"], *inputs: Tensor) -> Float[Tensor, "B T V"]:
        """readout(norm(stream)), of the decoder's stream."""
        return self.readout(self.decoder_norm(stream))

    def side(self, path: str) -> Side:
        return "answer" if path.startswith(("decoder", "target", "readout")) else "input"

    def input_mask(self, *inputs: Tensor) -> Bool[Tensor, "B S"] | None:
        return None if self.padding is None else padding_mask(inputs[0], self.padding)

    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        """Of a target the token at its place alone."""
        fed = inputs[1]
        return torch.eye(fed.shape[1], device=fed.device)[place].expand(len(fed), -1)

    def stack_positions(self) -> dict[str, Positions]:
        return {"source": self.source_positions, "target": self.target_positions}

    def joined_keys(self) -> nn.Module | None:
        """The bridge, unless it leaves the memory as it is."""
        return None if isinstance(self.bridge, nn.Identity) else self.bridge

    @torch.no_grad()
    def greedy(self, source: Tensor, *, start: int, length: int, cached: bool = True) -> Int[Tensor, "B T"]:
        """The likeliest next token, ``length`` times, with cached keys and values; without them by its
        definition, a full forward pass for each token: the reference to test by.
        """
        step = self.begin(source) if cached else super().begin(source)
        return greedy(step, source.new_full((len(source), 1), start, dtype=torch.long), length)

    def _step(
        self, token: Int[Tensor, "B 1"], read: "Encoded", caches: list[BlockCache], *, place: int
    ) -> Float[Tensor, "B 1 V"]:
        """Logits of the token after ``token``, which is the target's token number ``place``."""
        placed, across = self._target_places(read, place + 1)
        x = self._embed_target(token, placed, start=place)
        for block, cache in zip(self._decoder_blocks(), caches, strict=True):
            x = block.step(x, cache, placed=placed, across=across)
        return self.readout(self.decoder_norm(x))

    def _embed_target(self, tokens: Tensor, placed: Placed, *, start: int = 0) -> Tensor:
        return self.dropout(placed.embed(self.target_embed(tokens), start))

    def _decoder_blocks(self) -> list[DecoderBlock]:
        return [block for block in self.decoder if isinstance(block, DecoderBlock)]
