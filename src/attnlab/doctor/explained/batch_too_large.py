"""A larger batch makes the gradient less noisy, but beyond some size it is nearly the same gradient,
while the number of steps falls in proportion. Training then ends after a few steps that a larger rate
cannot replace.

Paper: McCandlish et al., "An Empirical Model of Large-Batch Training", 2018
"""

import torch

torch.manual_seed(0)
x = torch.randn(1024)
losses = {}
for batch in (16, 1024):
    w = torch.tensor(0.0)
    for part in x.reshape(-1, batch):
        w = w - 0.1 * 2 * ((w - 3) * part * part).mean()  # the gradient of the loss below
    losses[batch] = ((w - 3) * x).square().mean().item()
print(losses)
assert losses[1024] > 100 * losses[16]
