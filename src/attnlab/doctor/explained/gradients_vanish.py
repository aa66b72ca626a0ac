"""The gradient of an early layer is a product over all later ones. If each factor is below 1 it
vanishes with depth, and the early layers stay as they were drawn; sums around each part, which have
a slope of 1, keep it.

Paper: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
networks", 2010
"""

import torch

torch.manual_seed(0)
x, layers = torch.randn(8, 16), [torch.nn.Linear(16, 16) for _ in range(20)]
ratios = {}
for kept in (0, 1):
    y = x
    for layer in layers:
        y = kept * y + torch.tanh(layer(y))
    first, last = torch.autograd.grad(y.sum(), [layers[0].weight, layers[-1].weight])
    ratios["with sums" if kept else "without"] = (first.norm() / last.norm()).item()
print(ratios)
assert ratios["without"] < 1e-3 < ratios["with sums"]
