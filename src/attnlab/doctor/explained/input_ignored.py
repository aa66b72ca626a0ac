"""One layer through which nothing gets is enough: a ReLU whose units are all negative, or weights
that are zero. The output is then the bias of what follows, and the gradient of everything before is
zero.

Paper: Lu et al., "Dying ReLU and Initialization: Theory and Numerical Examples", 2020
"""

import torch

x = torch.randn(20, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
hidden = torch.relu(x - 100)  # a bias that a step with a high rate left behind
logits = hidden @ torch.ones(5, 3) + torch.tensor([0.1, 0.2, 0.3])
(slope,) = torch.autograd.grad(logits.sum(), x)
print(logits[:3], slope.abs().max().item())
assert torch.equal(logits, logits[:1].expand(20, 3))
assert slope.abs().max() == 0
