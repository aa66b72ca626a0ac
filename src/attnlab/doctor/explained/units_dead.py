"""A ReLU unit that is negative for every input gives 0 and has a gradient of 0, so it never comes
back. A single step with a rate that is too high can push many units there.

Paper: Lu et al., "Dying ReLU and Initialization: Theory and Numerical Examples", 2020
"""

import torch

torch.manual_seed(0)
x, w = torch.randn(50, 4), torch.randn(4, 6, requires_grad=True)
bias = torch.tensor([0.0, 0, 0, -99, -99, -99])  # three units that one large step has pushed down
(slope,) = torch.autograd.grad(torch.relu(x @ w + bias).sum(), w)
print(slope.norm(dim=0))
assert (slope.norm(dim=0) > 0).tolist() == [True, True, True, False, False, False]
