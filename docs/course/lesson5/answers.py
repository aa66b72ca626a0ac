"""Lesson 5: training that fails, with the doctor. Replace every ... by your answer, then run

    attnlab check lesson5 answers.py

Shapes: B examples, T tokens of an answer, V symbols.
"""

import math

import torch
import torch.nn.functional as F


def first_loss(classes):
    """The mean cross entropy, as torch computes it, of a model that gives all classes the same
    probability.
    """
    return ...


def decoder_input(target, start):
    """What a decoder is fed in training: target (B, T) are the right answers, start is the start
    token; (B, T).
    """
    return ...


def loss(logits, target):
    """The loss of a batch of sums: logits (B, T, V), target (B, T), in which 0 is the digit 0 and
    every token counts.
    """
    return ...


# A decoder is broken such that the first digit of its answer is always 0, and all else is right. Which
# share of sums of two numbers from 100 to 999, written with four digits, does it get right? From 0 to 1.
leading_zero = ...

# The first kind of fault that the doctor finds in each patient, such as "residual-missing".
kinds = {"a": ..., "b": ..., "c": ...}

# One setting for each patient with which it learns in as many epochs, such as {"dropout": 0.0}.
cures = {"a": ..., "b": ..., "c": ...}
