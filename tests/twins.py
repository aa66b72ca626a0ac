"""Torch's own modules with the weights of ours: the reference that ours must agree with."""

from typing import Any

import torch
from torch import nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import DecoderBlock, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual

PRECISIONS = [(torch.float64, 1e-10), (torch.float32, 1e-5)]
B, T, S, H, K = 2, 5, 7, 3, 5
D, HIDDEN = H * K, 11


def randomise(module: nn.Module) -> None:
    """No weight keeps a value that could hide a mistake, such as a norm's 1 or a bias's 0."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)


def copy(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.load_state_dict(ours.state_dict())


def encoder_block(norm_first: bool, activation: str, dtype: torch.dtype) -> EncoderBlock:
    block = EncoderBlock(
        attention=attention(), feed=_feed(activation), residual=lambda: _residual(norm_first)
    )
    randomise(block)
    return block.to(dtype)


def decoder_block(norm_first: bool, activation: str, dtype: torch.dtype) -> DecoderBlock:
    block = DecoderBlock(
        attention=attention(),
        cross=attention(),
        feed=_feed(activation),
        residual=lambda: _residual(norm_first),
    )
    randomise(block)
    return block.to(dtype)


def attention() -> Attention:
    return Attention(width=D, heads=H, head_width=K)


def _feed(activation: str) -> FeedForward:
    function = nn.ReLU() if activation == "relu" else nn.GELU()
    return FeedForward(width=D, hidden=HIDDEN, activation=function)


def _residual(norm_first: bool) -> Residual:
    return (
        PreNorm(norm=nn.LayerNorm(D), dropout=0.0)
        if norm_first
        else PostNorm(norm=nn.LayerNorm(D), dropout=0.0)
    )


def attention_twin(ours: Attention | NoHeads) -> nn.MultiheadAttention:
    assert isinstance(ours, Attention)
    weight = ours.query.weight
    width = weight.shape[1]
    theirs = nn.MultiheadAttention(width, ours.heads, batch_first=True, dtype=weight.dtype)
    parts = (ours.query, ours.key, ours.value)
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([part.weight for part in parts]),
            "in_proj_bias": torch.cat([part.bias for part in parts]),
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    return theirs


def _shape(ours: EncoderBlock | DecoderBlock, *, norm_first: bool, activation: str) -> dict[str, Any]:
    """Arguments with which torch makes a layer of the same shape."""
    weight = ours.feed.up.weight
    return {
        "d_model": weight.shape[1],
        "nhead": ours.self.heads,
        "dim_feedforward": weight.shape[0],
        "dropout": 0.0,
        "activation": activation,
        "batch_first": True,
        "norm_first": norm_first,
        "dtype": weight.dtype,
    }


def encoder_twin(ours: EncoderBlock, *, norm_first: bool, activation: str) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(**_shape(ours, norm_first=norm_first, activation=activation))
    copy(attention_twin(ours.self), theirs.self_attn)
    copy(ours.feed.up, theirs.linear1)
    copy(ours.feed.down, theirs.linear2)
    copy(ours.self_residual.norm, theirs.norm1)
    copy(ours.feed_residual.norm, theirs.norm2)
    return theirs


def decoder_twin(ours: DecoderBlock, *, norm_first: bool, activation: str) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(**_shape(ours, norm_first=norm_first, activation=activation))
    copy(attention_twin(ours.self), theirs.self_attn)
    copy(attention_twin(ours.cross), theirs.multihead_attn)
    copy(ours.feed.up, theirs.linear1)
    copy(ours.feed.down, theirs.linear2)
    copy(ours.self_residual.norm, theirs.norm1)
    copy(ours.cross_residual.norm, theirs.norm2)
    copy(ours.feed_residual.norm, theirs.norm3)
    return theirs
