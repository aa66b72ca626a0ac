"""A step moves the weights by the gradient times the rate, so with a rate that is too low training
ends long before the minimum. The loss falls smoothly to the last step, which looks healthy; only a
higher rate or many more steps show what the model can learn.

Paper: Smith, "Cyclical Learning Rates for Training Neural Networks", WACV 2017
"""

import torch

x, losses = torch.linspace(-1, 1, 50), {}
for rate in (0.001, 1.0):
    w = torch.zeros(())
    for _ in range(100):
        w = w - rate * 2 * ((w - 3) * x * x).mean()  # the gradient of the loss below
    losses[rate] = ((w - 3) * x).square().mean().item()
print(losses)
assert losses[0.001] > 100 * losses[1.0]
