"""Two heads with the same weights get the same gradient, so no step can make them differ: the model
has one head fewer than it pays for. Random initial weights are what breaks this symmetry.

Paper: Goodfellow, Bengio and Courville, "Deep Learning", 2016, section 8.4
"""

import torch

chance = torch.Generator().manual_seed(0)
x, y = torch.randn(20, 5, generator=chance), torch.randn(20, generator=chance)
heads = torch.randn(1, 5, generator=chance).repeat(2, 1).requires_grad_()  # two that begin alike
loss = (torch.tanh(heads @ x.T).sum(dim=0) - y).square().mean()
(slope,) = torch.autograd.grad(loss, heads)
print(slope)
assert torch.allclose(slope[0], slope[1])
