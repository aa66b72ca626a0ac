"""Lesson 3: does attention explain? Replace every ... by your answer, then run

    attnlab check lesson3 answers.py

Shapes: S keys, K width of a head, H heads, T tokens.
"""

import torch


def another_pattern(a, v):
    """Other weights with the same output: a (S,) positive with the sum 1, v (S, K); the result is (S,).

    The result is at least 0 everywhere, sums to 1, gives the output a @ v and differs from a. There are
    more keys than coordinates (S > K + 1), so it exists.
    """
    return ...


def rollout(patterns):
    """Attention rollout: patterns is a list with (H, T, T) of each layer, the first layer first; (T, T).

    Of every layer take the mean over heads, mix it half and half with the identity (the residual
    connection), and multiply the layers.
    """
    return ...


def occlusion(f, tokens, blank):
    """The importance of each token: f(tokens) less f with the blank in the place of this token alone; (T,).

    f gives the evidence for an answer as a tensor with one number. tokens is (T,).
    """
    return ...


def deletion_curve(f, tokens, scores, blank):
    """f after 0, 1, ..., T deletions, the tokens with the highest scores first; the result is (T + 1,)."""
    return ...


# attnlab explain zoo:adder 498+198 --place 10^2 explains the hundreds of the answer. Positions in the
# list of parts count from 0.

# The position of the part with the largest score of attention.
attention_top = ...

# The position of the part with the largest score of occlusion (largest in size).
occlusion_top = ...
