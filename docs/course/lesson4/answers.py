"""Lesson 4: positions and length. Replace every ... by your answer, then run

attnlab check lesson4 answers.py
"""

import math

import torch

import attnlab as al


def sinusoidal(length, width):
    """Sinusoidal positions (length, width): sin and cos of place / 10000^(2i / width) in columns 2i
    and 2i+1.
    """
    return ...


def rotate(x, places):
    """Rotary positions: x (T, K), places (T,); the result is (T, K).

    Pairs of coordinates are turned by an angle: place / 10000^(2i / K) for pair i. Which coordinates form
    a pair is up to you.
    """
    return ...


def alibi(heads, length):
    """Linear biases (heads, length, length): -m_h |i - j| for query i and key j, m_h = 2^(-8 h /
    heads), h from 1.
    """
    return ...


def balanced_accuracy(predicted, truth):
    """The mean of the shares of right answers within each class: predicted and truth are (N,) of 0 and 1.

    A constant answer gets one half, however frequent the classes are.
    """
    return ...


# The head of zoo:sorter that puts most weight on the next number.
next_head = ...  # such as "encoder.0.self.1"

# The accuracy of zoo:sorter (0 to 1) without this head, zeros in its place, on lists of 64 numbers, half of
# which have two neighbours exchanged: run.lengths(lengths="64", negatives="swap").
without_it = ...
