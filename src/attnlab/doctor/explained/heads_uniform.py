"""A head chooses by the differences between its scores; if q or k is zero, or both are very small,
all scores are equal. The gradient of k has q as a factor and that of q has k, so where one is zero
the other does not learn.

Paper: Clark et al., "What Does BERT Look At? An Analysis of BERT's Attention", 2019
"""

import torch

k = torch.randn(6, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
q, values = torch.zeros(4, 8), torch.arange(6.0)
pattern = (q @ k.T).softmax(dim=-1)
(slope,) = torch.autograd.grad((pattern @ values).sum(), k)
print(pattern[0], slope.abs().max().item())
assert torch.allclose(pattern, torch.full((4, 6), 1 / 6))
assert slope.abs().max() == 0
