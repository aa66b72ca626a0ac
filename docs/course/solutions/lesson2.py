"""Solutions to lesson 2."""

import math

import torch

import attnlab as al

ALL = "all examples"


def entropy(pattern):
    return torch.special.entr(pattern).sum(dim=-1) / math.log(pattern.shape[-1])


def weight_on(pattern, keys):
    return (pattern * keys).sum(dim=-1).mean(dim=-1)


run = al.load("zoo:adder")

_partner = {row.head: row.metrics.get("partner") for row in run.heads(examples=500).heads}
_pairing = {head: metric.value for head, metric in _partner.items() if metric is not None}
partner_head = max(_pairing, key=_pairing.get)

_singles = run.ablate(baselines=["mean"], examples=500).singles
lost = {head: row.lost[ALL].value for head, row in _singles.items()}
most_missed = max(lost, key=lost.get)
harmless = [head for head in lost if lost[head] < 0.01]


def right_without(heads):
    with run.without(*heads, to="mean"):
        return run.evaluate(split="valid").exact_match


together = right_without(harmless)


# What is lost is 0 for most heads; the loss tells them apart. The 12 heads with which it rises least:
removed = sorted(_singles, key=lambda head: _singles[head].loss_rise.value)[:12]
