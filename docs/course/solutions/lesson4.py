"""Solutions to lesson 4."""

import torch

import attnlab as al


def sinusoidal(length, width):
    places = torch.arange(length)[:, None]
    angles = places / 10_000 ** (torch.arange(0, width, 2) / width)  # (length, width / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def rotate(x, places):
    width = x.shape[-1]
    angles = places[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    a, b = x[:, ::2], x[:, 1::2]
    turned = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
    return torch.stack(turned, dim=-1).flatten(1)


def alibi(heads, length):
    places = torch.arange(length)
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    return -slopes[:, None, None] * (places[None, :] - places[:, None]).abs()


def balanced_accuracy(predicted, truth):
    right = (predicted == truth).float()
    return (right[truth == 0].mean() + right[truth == 1].mean()) / 2


run = al.load("zoo:sorter")
_next = {row.head: row.metrics["next"].value for row in run.heads(examples=500).heads}
next_head = max(_next, key=_next.get)
with run.without(next_head, to="zero"):
    without_it = run.lengths(lengths="64", negatives="swap", examples=200).rows[0].accuracy
