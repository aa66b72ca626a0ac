"""Choosing anew what heads write, while where they look stays as it is.

A head looks with its pattern A at the tokens m of its memory and adds f V O to the output, f = A m: a
linear map of what it sees, whose rank is at most the head's width K. For one head the best such map towards
given values y is reduced-rank regression (Izenman, 1975): with the least-squares solution M of f M = y, and
U the first K right singular vectors of f M,

    V = M U,    O = U^T

Of several heads, each is chosen in turn towards what the others leave over, a few times around. Products
of f with f and with y are all that is needed of the data.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.attention import Attention

ROUNDS = 3


@torch.no_grad()
def choose_values(
    attention: Attention, seen: Float[Tensor, "H N D"], target: Float[Tensor, "N D"], *, ridge: float
) -> None:
    """Choose values and output of ``attention`` anew, so that it makes ``target`` of what is ``seen``.

    Means are left to the output's bias, which is not chosen here.
    """
    output = attention.output
    assert isinstance(output, nn.Linear)
    heads, width, size = attention.heads, attention.head_width, seen.shape[2]
    f = (seen - seen.mean(dim=1, keepdim=True)).transpose(0, 1).flatten(1)  # (N, H D)
    y = target - target.mean(dim=0)
    grams = (f.T @ f).double().view(heads, size, heads, size).transpose(1, 2)  # (H, H, D, D)
    found = (f.T @ y).double().view(heads, size, size)
    values, writes = _values(attention).double(), output.weight.T.double().view(heads, width, size)
    maps = values @ writes  # (H, D, D)
    for _ in range(ROUNDS):
        for head in range(heads):
            gram = grams[head, head].clone()
            gram.diagonal().add_(ridge * gram.diagonal().mean() + torch.finfo(torch.double).tiny)
            left = found[head] - (grams[head] @ maps).sum(dim=0)
            better = maps[head] + torch.linalg.solve(gram, left)
            _, vectors = torch.linalg.eigh(better.T @ gram @ better)
            main = vectors[:, -width:]
            values[head], writes[head] = better @ main, main.T
            maps[head] = values[head] @ writes[head]
    attention.value.weight.copy_(values.transpose(1, 2).flatten(0, 1))
    attention.value.bias.zero_()
    output.weight.copy_(writes.flatten(0, 1).T)


@torch.no_grad()
def concatenated_z(attention: Attention, seen: Float[Tensor, "H B T D"]) -> Float[Tensor, "B T HK"]:
    """The heads' z side by side, for what is ``seen``; patterns sum to one, so the bias passes through."""
    z = torch.einsum("hbtd,hdk->bthk", seen, _values(attention)).flatten(2)
    return z + attention.value.bias


def _values(attention: Attention) -> Float[Tensor, "H D K"]:
    weight = attention.value.weight
    return weight.view(attention.heads, attention.head_width, weight.shape[1]).transpose(1, 2)
