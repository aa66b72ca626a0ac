"""Fresh weights have large and changing gradients, and an adaptive optimiser that has seen one
gradient moves every weight by the whole rate. A warm-up keeps these first steps small, until the
gradients, and what is known of their size, are steadier.

Paper: Xiong et al., "On Layer Normalization in the Transformer Architecture", ICML 2020
"""

import torch

moved = {}
for scale in (1e-6, 1.0):
    w = torch.nn.Parameter(torch.zeros(3))
    optimiser = torch.optim.Adam([w], lr=0.1)
    w.grad = torch.full((3,), scale)
    optimiser.step()
    moved[scale] = w.detach().abs().mean().item()
print(moved)  # the first step is as long as the rate, however small the gradient
assert all(abs(each - 0.1) < 0.01 for each in moved.values())
