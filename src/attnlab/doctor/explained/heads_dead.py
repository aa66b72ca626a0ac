"""The output projection reads the outputs of all heads; where its columns for a head are zero,
nothing depends on that head. It gets no gradient either, so it stays as it is, and it can be
removed without loss.

Paper: Michel, Levy and Neubig, "Are Sixteen Heads Really Better than One?", NeurIPS 2019
"""

import torch

z = torch.randn(2, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)  # two heads
project = torch.ones(2, 4, 3) * torch.tensor([1.0, 0.0])[:, None, None]  # zero for the second
out = torch.einsum("hk,hko->o", z, project)
(slope,) = torch.autograd.grad(out.sum(), z)
print(slope)
assert slope[0].abs().min() > 0
assert slope[1].abs().max() == 0
