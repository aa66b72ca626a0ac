"""Solutions to lesson 3."""

import torch

import attnlab as al


def another_pattern(a, v):
    rows = torch.cat([v.T, torch.ones(1, len(a))])  # what must not change: the output and the sum
    *_, directions = torch.linalg.svd(rows, full_matrices=True)
    free = directions[-1]  # rows @ free is zero
    falling = free < 0
    step = (a[falling] / -free[falling]).min()  # the first weight that reaches zero
    return (a + step * free).clamp(min=0)


def rollout(patterns):
    held = torch.eye(patterns[0].shape[-1])
    for pattern in patterns:
        held = (pattern.mean(dim=0) / 2 + torch.eye(len(held)) / 2) @ held
    return held


def occlusion(f, tokens, blank):
    scores = []
    for at in range(len(tokens)):
        without = tokens.clone()
        without[at] = blank
        scores.append(f(tokens) - f(without))
    return torch.stack(scores)


def deletion_curve(f, tokens, scores, blank):
    left = tokens.clone()
    points = [f(left)]
    for at in scores.argsort(descending=True):
        left[at] = blank
        points.append(f(left))
    return torch.stack(points)


_hundreds = al.load("zoo:adder").explain("498+198", place="10^2").places[0]


def _top(method):
    scores = torch.tensor(_hundreds.scores[method])
    return scores.abs().argmax().item()


attention_top = _top("attention")
occlusion_top = _top("occlusion")
