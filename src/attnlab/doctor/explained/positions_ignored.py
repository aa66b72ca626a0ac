"""Attention sums over keys, and a sum does not depend on their order. Without positions a
transformer encoder treats its input as a set, so it cannot learn anything that depends on order.

Paper: Lee et al., "Set Transformer", ICML 2019
"""

import torch
from torch.nn.functional import scaled_dot_product_attention as attend

x = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
places, moved = torch.linspace(-1, 1, 6)[:, None], []
for add in (0 * places, places):
    forward, backward = x + add, x.flip(1) + add  # the same tokens in another order
    read = [attend(each, each, each).mean(dim=1) for each in (forward, backward)]
    moved.append((read[0] - read[1]).abs().max().item())
print(moved)  # without and with positions
assert moved[0] < 1e-5
assert moved[1] > 0.01
