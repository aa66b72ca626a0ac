"""Weight decay multiplies each weight by 1 - rate · decay at every step, whatever the loss says. If
that is stronger than the gradient, weights shrink towards 0, and a model with weights of 0 gives the
same answer to everything.

Paper: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019
"""

import torch

ends = {}
for decay in (0.01, 50.0):
    w = torch.nn.Parameter(torch.ones(()))
    optimiser = torch.optim.AdamW([w], lr=0.01, weight_decay=decay)
    for _ in range(200):
        w.grad = 2 * (w.detach() - 1)  # of (w - 1)², so 1 is best
        optimiser.step()
    ends[decay] = w.item()
print(ends)
assert ends[0.01] > 0.9
assert ends[50.0] < 0.1
