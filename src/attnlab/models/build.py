"""From a model spec to a model. Specs end here: modules are given parts and plain numbers."""

from typing import overload

import torch
from torch import nn

from attnlab import specs
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models.classifier import Classifier, build_tokens
from attnlab.models.images import CNN, MLP, ImageShape, build_patch_attention
from attnlab.models.parts import Parts
from attnlab.models.seq2seq import Seq2Seq
from attnlab.models.vit import build_patch_seq2seq, build_vit
from attnlab.positions import ONE_BY_ONE
from attnlab.specs.sizes import check_model

MNIST: ImageShape = (1, 28, 28)
Tokens = specs.Tokens | None
Image = ImageShape | None


@overload
def build_model(
    spec: specs.Seq2SeqModel | specs.PatchSeq2SeqModel,
    *,
    vocabulary: int,
    tokens: Tokens = None,
    columns: specs.Columns = ONE_BY_ONE,
) -> Seq2Seq: ...
@overload
def build_model(
    spec: specs.TokensModel | specs.VitModel,
    *,
    vocabulary: int,
    tokens: Tokens = None,
    columns: specs.Columns = ONE_BY_ONE,
) -> Classifier: ...
@overload
def build_model(
    spec: specs.ModelSpec,
    *,
    vocabulary: int,
    tokens: Tokens = None,
    image: Image = None,
    columns: specs.Columns = ONE_BY_ONE,
) -> Model: ...
def build_model(
    spec: specs.ModelSpec,
    *,
    vocabulary: int,
    tokens: Tokens = None,
    image: Image = None,
    columns: specs.Columns = ONE_BY_ONE,
) -> Model:
    """A model with fresh weights from torch's generator.

    ``vocabulary`` is how many targets there are, ``tokens`` what inputs are made of; None: of the same.
    ``image`` is the shape of an image, or of each of its cells; None: one of MNIST. ``columns`` is how
    the task counts the columns that tokens stand in.
    """
    check_model(spec)
    try:
        model = _build(spec, vocabulary, tokens, image or MNIST, columns)
        _initialise(model)
    except RuntimeError as error:  # torch's word for memory that is not to be had
        sizes = ", ".join(
            f"{name} {size}" for name, size in specs.to_json(spec).items() if type(size) is int
        )
        raise LabError(f"a model of {sizes} does not fit into memory; make it smaller") from error
    if isinstance(spec, specs.PatchAttentionModel):
        _stretch(model, spec)
    return model


def build_for(spec: specs.Spec) -> Model:
    """The model of an experiment, made to measure for its task."""
    task = spec.task
    return build_model(
        spec.model,
        vocabulary=task.vocabulary,
        tokens=task.tokens,
        image=task.cell_shape,
        columns=task.coupling,
    )


def _build(
    spec: specs.ModelSpec, vocabulary: int, tokens: Tokens, image: ImageShape, columns: specs.Columns
) -> Model:
    match spec:
        case specs.Seq2SeqModel():
            return _build_seq2seq(spec, vocabulary, tokens, columns)
        case specs.TokensModel():
            return build_tokens(spec, vocabulary, tokens or specs.Tokens.shared(vocabulary), columns)
        case specs.VitModel():
            return build_vit(spec, vocabulary=vocabulary, image=image)
        case specs.PatchSeq2SeqModel():
            return build_patch_seq2seq(spec, vocabulary=vocabulary, cell=image)
        case specs.PatchAttentionModel():
            return build_patch_attention(spec, vocabulary=vocabulary, image=image)
        case specs.MLPModel():
            return MLP(image=image, hidden=spec.hidden, vocabulary=vocabulary)
        case specs.CNNModel():
            return CNN(image=image, filters=spec.filters, kernel=spec.kernel, vocabulary=vocabulary)


def _build_seq2seq(
    spec: specs.Seq2SeqModel, vocabulary: int, tokens: Tokens, columns: specs.Columns
) -> Seq2Seq:
    parts = Parts(spec, log_scale=spec.log_scale, counted=columns)
    return Seq2Seq(
        source_embed=nn.Embedding(tokens.count if tokens else vocabulary, spec.width),
        padding=tokens.padding if tokens else None,
        source_positions=parts.positions(),
        encoder=parts.encoder(spec.encoder_layers),
        encoder_norm=parts.closing_norm(),
        target_embed=nn.Embedding(vocabulary, spec.width),
        target_positions=parts.positions(),
        decoder=parts.decoder(spec.decoder_layers),
        decoder_norm=parts.closing_norm(),
        readout=nn.Linear(spec.width, vocabulary),
        dropout=spec.dropout,
    )


def _initialise(model: Model) -> None:
    """Matrices Xavier-uniform (Glorot and Bengio, 2010), biases zero, embeddings N(0, 1)."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)


@torch.no_grad()
def _stretch(model: Model, spec: specs.PatchAttentionModel) -> None:
    """Multiply first weights by the gains of the spec."""
    for name, weight in model.named_parameters():
        if name.endswith(("self.query.weight", "self.key.weight")):
            weight.mul_(spec.gain)
        elif name.endswith(("feed.down.weight", "readout.weight")):
            weight.mul_(spec.end_gain)
