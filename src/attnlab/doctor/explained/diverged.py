"""Where the loss is curved, a step of more than 2 over the curvature lands further from the minimum
than it began. Each next step is larger still, until numbers overflow and the loss is infinite or NaN;
from there on no step can mend it.

Paper: LeCun et al., "Efficient BackProp", 1998
"""

import torch

losses = {}
for rate in (0.9, 1.1):
    w = torch.tensor(1.0)
    for _ in range(400):
        w = w - rate * 2 * w  # the gradient of w², whose curvature is 2
    losses[rate] = w.square().item()
print(losses)
assert losses[0.9] < 1e-12
assert losses[1.1] == float("inf")
