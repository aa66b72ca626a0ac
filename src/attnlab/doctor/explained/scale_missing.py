"""The product of two random vectors of width K has a standard deviation of √K. Without the factor
1/√K the softmax therefore puts nearly all weight on one key from the start, where its gradient is
close to zero.

Paper: Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.1
"""

import torch

chance = torch.Generator().manual_seed(0)
q, k = torch.randn(1000, 64, generator=chance), torch.randn(16, 64, generator=chance)
raw, scaled = ((q @ k.T * factor).softmax(dim=-1).amax(dim=-1).mean() for factor in (1, 64**-0.5))
print(raw.item(), scaled.item())  # the largest weight of a query
assert raw > 0.8
assert scaled < 0.4
