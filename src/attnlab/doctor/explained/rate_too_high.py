"""Gradient descent overshoots: along a direction of curvature c, steps with a rate above 2/c land
further from the minimum than they began. The loss then jumps or diverges, and what was learned
before is lost.

Paper: Cohen et al., "Gradient Descent on Neural Networks Typically Occurs at the Edge of
Stability", ICLR 2021
"""

import torch

ends = {}
for rate in (0.4, 1.1):  # the curvature of w² is 2, so the limit is 1
    w = torch.tensor(1.0)
    for _ in range(50):
        w = w - rate * 2 * w
    ends[rate] = abs(w.item())
print(ends)
assert ends[0.4] < 1e-6
assert ends[1.1] > 1000
