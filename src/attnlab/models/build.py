"""From a model spec to a model. Specs end here: modules are given parts and plain numbers."""

from collections.abc import Callable
from typing import overload

import torch
from torch import nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import DecoderBlock, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from attnlab.errors import LabError
from attnlab.models.images import CNN, MLP
from attnlab.models.patch_attention import build_patch_attention
from attnlab.models.seq2seq import Seq2Seq
from attnlab.positions import build_positions
from attnlab.spec import CNNModel, MLPModel, ModelSpec, PatchAttentionModel, Seq2SeqModel, to_json


@overload
def build_model(spec: Seq2SeqModel, *, vocabulary: int) -> Seq2Seq: ...
@overload
def build_model(spec: ModelSpec, *, vocabulary: int) -> nn.Module: ...
def build_model(spec: ModelSpec, *, vocabulary: int) -> nn.Module:
    """A model with fresh weights from torch's generator; ``vocabulary`` is how many targets there are."""
    try:
        model = _build(spec, vocabulary)
        _initialise(model)
    except RuntimeError as error:  # torch's word for memory that is not to be had
        sizes = ", ".join(f"{name} {size}" for name, size in to_json(spec).items() if type(size) is int)
        raise LabError(f"a model of {sizes} does not fit into memory; make it smaller") from error
    if isinstance(spec, PatchAttentionModel):
        _stretch(model, spec)
    return model


def _build(spec: ModelSpec, vocabulary: int) -> nn.Module:
    match spec:
        case Seq2SeqModel():
            return _build_seq2seq(spec, vocabulary)
        case PatchAttentionModel():
            return build_patch_attention(spec, vocabulary=vocabulary)
        case MLPModel():
            return MLP(hidden=spec.hidden, vocabulary=vocabulary)
        case CNNModel():
            return CNN(filters=spec.filters, kernel=spec.kernel, vocabulary=vocabulary)


def _build_seq2seq(spec: Seq2SeqModel, vocabulary: int) -> Seq2Seq:
    width, head_width = spec.width, spec.width // spec.heads

    counts = iter(spec.head_counts or (spec.heads,) * spec.attentions)

    def attention() -> Attention | NoHeads:
        count = next(counts)
        if count == 0:
            return NoHeads(width=width)
        return Attention(width=width, heads=count, head_width=head_width)

    def feed() -> FeedForward:
        activation = nn.ReLU() if spec.activation == "relu" else nn.GELU()
        return FeedForward(width=width, hidden=spec.hidden, activation=activation)

    residual, closing_norm = _norms(spec)
    return Seq2Seq(
        source_embed=nn.Embedding(vocabulary, width),
        source_positions=build_positions(spec.positions, width=width, head_width=head_width),
        encoder=[
            EncoderBlock(attention=attention(), feed=feed(), residual=residual)
            for _ in range(spec.encoder_layers)
        ],
        encoder_norm=closing_norm(),
        target_embed=nn.Embedding(vocabulary, width),
        target_positions=build_positions(spec.positions, width=width, head_width=head_width),
        decoder=[
            DecoderBlock(attention=attention(), cross=attention(), feed=feed(), residual=residual)
            for _ in range(spec.decoder_layers)
        ],
        decoder_norm=closing_norm(),
        readout=nn.Linear(width, vocabulary),
        dropout=spec.dropout,
    )


def _norms(spec: Seq2SeqModel) -> tuple[Callable[[], Residual], Callable[[], nn.Module]]:
    match spec.norm:
        case "pre":
            return (
                lambda: PreNorm(norm=nn.LayerNorm(spec.width), dropout=spec.dropout),
                lambda: nn.LayerNorm(spec.width),
            )
        case "post":
            return lambda: PostNorm(norm=nn.LayerNorm(spec.width), dropout=spec.dropout), nn.Identity


def _initialise(model: nn.Module) -> None:
    """Matrices Xavier-uniform (Glorot and Bengio, 2010), biases zero, embeddings N(0, 1)."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)


@torch.no_grad()
def _stretch(model: nn.Module, spec: PatchAttentionModel) -> None:
    """Multiply first weights by the gains of the spec."""
    for name, weight in model.named_parameters():
        if name.endswith(("self.query.weight", "self.key.weight")):
            weight.mul_(spec.gain)
        elif name.endswith(("feed.down.weight", "readout.weight")):
            weight.mul_(spec.end_gain)
