"""A layer multiplies the size of what passes by the spread of its weights times the root of its
number of inputs. With a factor of 1 the size is kept; with any other it grows or shrinks from layer
to layer, and gradients with it.

Paper: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
networks", 2010
"""

import torch

torch.manual_seed(0)
sizes = {}
for factor in (0.2, 1.0, 5.0):
    x = torch.randn(8, 64)
    for _ in range(10):
        x = x @ torch.randn(64, 64) * factor / 64**0.5
    sizes[factor] = x.std().item()
print(sizes)
assert sizes[0.2] < 1e-5
assert 0.1 < sizes[1.0] < 10
assert sizes[5.0] > 1e5
