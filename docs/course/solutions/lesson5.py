"""Solutions to lesson 5."""

import math

import torch
import torch.nn.functional as F


def first_loss(classes):
    return math.log(classes)


def decoder_input(target, start):
    starts = torch.full_like(target[:, :1], start)
    return torch.cat([starts, target[:, :-1]], dim=1)


def loss(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


_numbers = torch.arange(100, 1000)
leading_zero = (_numbers[:, None] + _numbers < 1000).double().mean().item()

kinds = {"a": "rate-too-high", "b": "rate-too-low", "c": "batch-too-large"}
cures = {"a": {"lr": 0.01}, "b": {"lr": 0.01}, "c": {"batch": 32}}
