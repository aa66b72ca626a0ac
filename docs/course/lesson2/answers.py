"""Lesson 2: heads and what they do. Replace every ... by your answer, then run

    attnlab check lesson2 answers.py

Shapes: H heads, T queries, S keys.
"""

import math

import torch

import attnlab as al


def entropy(pattern):
    """How evenly every query spreads its weight: pattern (H, T, S), the result is (H, T).

    Minus the sum over keys of a ln a, divided by its largest possible value: 1 is uniform, 0 is one key.
    """
    return ...


def weight_on(pattern, keys):
    """The weight of each head on a set of keys: pattern (H, T, S), keys (T, S) of True and False.

    Of each row the sum of the weights on the keys that are True, then the mean over the rows: (H,).
    """
    return ...


# The head of zoo:adder whose encoder digits look most at the digit of the other operand in their own
# column.
partner_head = ...  # such as "encoder.0.self.1"

# The head without which zoo:adder loses most answers, if its mean takes its place (500 validation
# examples).
most_missed = ...

# All heads without which, one at a time, less than 1 point (a share of 0.01) is lost.
harmless = ...  # a list of names

# The share (0 to 1) of validation answers that stay right without all of them at once, means in their
# place.
together = ...

# At least 12 heads without which, all at once, at least 90% of the validation answers stay right.
removed = ...  # a list of names
