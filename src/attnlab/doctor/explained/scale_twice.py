"""Dividing by √K twice leaves scores with a standard deviation of 1/√K, so every key gets nearly
the same weight. Attention is then an average, and q and k must grow by a factor of √K before it can
choose.

Paper: Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.1
"""

import torch

chance = torch.Generator().manual_seed(0)
q, k = torch.randn(1000, 64, generator=chance), torch.randn(16, 64, generator=chance)
once, twice = ((q @ k.T * factor).softmax(dim=-1).amax(dim=-1).mean() for factor in (64**-0.5, 1 / 64))
print(once.item(), twice.item(), 1 / 16)  # the largest weight of a query, and an even one
assert once > 0.2
assert twice < 0.1
