"""A model with as many weights as examples can fit them exactly, noise included, without having
learned the rule behind them. Between the examples it is wrong, so the training loss falls while the
validation loss rises.

Paper: Zhang et al., "Understanding deep learning requires rethinking generalization", ICLR 2017
"""

import torch

chance = torch.Generator().manual_seed(0)
x, between = (torch.linspace(-1, 1, n, dtype=torch.double) for n in (10, 91))
y = torch.sin(3 * x) + 0.3 * torch.randn(10, generator=chance, dtype=torch.double)
weights = torch.linalg.solve(torch.vander(x), y)  # ten weights for ten examples
train = (torch.vander(x) @ weights - y).abs().mean()
valid = (torch.vander(between, 10) @ weights - torch.sin(3 * between)).abs().mean()
print(train.item(), valid.item())
assert valid > 1000 * train
