"""Lesson 1: what attention computes. Replace every ... by your answer, then run

    attnlab check lesson1 answers.py

Shapes: B examples, T queries, S keys, H heads, K width of a head, D width of the model.
"""

import math

import torch


def attention(q, k, v):
    """Scaled dot-product attention: q (B, T, K), k (B, S, K), v (B, S, K); the result is (B, T, K)."""
    return ...


def causal_mask(length):
    """A mask (length, length): True where the query (row) may see the key (column) in a decoder."""
    return ...


def masked_attention(q, k, v, visible):
    """The same as attention, but a query sees only the keys that visible (T, S) says."""
    return ...


def multi_head(x, wq, wk, wv, wo, heads):
    """Self attention with several heads: x (B, T, D), all four weights (D, D); the result is (B, T, D).

    Head number h has the columns h * D // heads to (h + 1) * D // heads of wq, wk and wv.
    """
    return ...


# zoo:adder answers 498+198. Which head of decoder.0.cross puts most weight on a single token in the
# first row of its pattern, that of the start token? For example "decoder.0.cross.2".
sharpest_head = ...
