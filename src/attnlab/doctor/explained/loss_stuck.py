"""Where the gradient is zero, or does not reach the weights, no number of steps changes the loss.
The usual causes are activations that saturate, weights that the optimiser does not hold, a loss
that is not computed from the model's output, and labels that the input does not determine.

Paper: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
networks", 2010
"""

import torch

w = torch.tensor(100.0, requires_grad=True)
loss = torch.sigmoid(w).square()  # lower for smaller w, but the sigmoid is flat at 100
(slope,) = torch.autograd.grad(loss, w)
print(loss.item(), slope.item())
assert loss == 1
assert slope == 0
