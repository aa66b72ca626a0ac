"""From a model spec to a model. Specs end here: modules are given parts and plain numbers."""

from collections.abc import Callable

from torch import nn

from attnlab.attention import Attention
from attnlab.blocks import DecoderBlock, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from attnlab.errors import LabError
from attnlab.models.seq2seq import Seq2Seq
from attnlab.positions import build_positions
from attnlab.spec import Seq2SeqModel


def build_model(spec: Seq2SeqModel, *, vocabulary: int) -> Seq2Seq:
    """A model with fresh weights, drawn from torch's global generator."""
    try:
        return _build_seq2seq(spec, vocabulary)
    except RuntimeError as error:  # torch's word for memory that is not to be had
        raise LabError(
            f"a model of width {spec.width}, hidden {spec.hidden} and {spec.encoder_layers} + "
            f"{spec.decoder_layers} layers does not fit into memory; make it smaller"
        ) from error


def _build_seq2seq(spec: Seq2SeqModel, vocabulary: int) -> Seq2Seq:
    width, head_width = spec.width, spec.width // spec.heads

    def attention() -> Attention:
        return Attention(width=width, heads=spec.heads, head_width=head_width)

    def feed() -> FeedForward:
        activation = nn.ReLU() if spec.activation == "relu" else nn.GELU()
        return FeedForward(width=width, hidden=spec.hidden, activation=activation)

    residual, closing_norm = _norms(spec)
    model = Seq2Seq(
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
    _initialise(model)
    return model


def _norms(spec: Seq2SeqModel) -> tuple[Callable[[], Residual], Callable[[], nn.Module]]:
    match spec.norm:
        case "pre":
            return (
                lambda: PreNorm(width=spec.width, dropout=spec.dropout),
                lambda: nn.LayerNorm(spec.width),
            )
        case "post":
            return lambda: PostNorm(width=spec.width, dropout=spec.dropout), nn.Identity


def _initialise(model: nn.Module) -> None:
    """Matrices Xavier-uniform (Glorot and Bengio, 2010), biases zero, embeddings N(0, 1)."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
