"""Solutions to lesson 1."""

import math

import torch

import attnlab as al


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, S)
    pattern = scores.softmax(dim=-1)  # each row sums to 1
    return pattern @ v  # (B, T, K)


def causal_mask(length):
    places = torch.arange(length)
    return places[None, :] <= places[:, None]


def masked_attention(q, k, v, visible):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~visible, -math.inf)
    return scores.softmax(dim=-1) @ v


def multi_head(x, wq, wk, wv, wo, heads):
    batch, length, width = x.shape

    def split(values):
        return values.view(batch, length, heads, width // heads).transpose(1, 2)  # (B, H, T, K)

    z = attention(split(x @ wq), split(x @ wk), split(x @ wv))  # (B, H, T, K)
    return z.transpose(1, 2).reshape(batch, length, width) @ wo


_seen = al.load("zoo:adder").record("498+198", "decoder.0.cross.pattern")["decoder.0.cross.pattern"]
_first_row = _seen[0, :, 0]  # (H, S)
sharpest_head = f"decoder.0.cross.{_first_row.amax(dim=-1).argmax().item()}"
