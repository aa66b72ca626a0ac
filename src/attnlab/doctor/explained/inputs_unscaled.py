"""Initial weights are chosen for inputs with a mean near 0 and a standard deviation near 1. Larger
inputs saturate activations and stretch the loss along some directions, so that no single rate suits
all of them.

Paper: LeCun et al., "Efficient BackProp", 1998
"""

import torch

torch.manual_seed(0)
pixels, layer = 255 * torch.rand(100, 20), torch.nn.Linear(20, 50)
scaled = (pixels - pixels.mean()) / pixels.std()
flat = [(layer(each).tanh().abs() > 0.99).float().mean().item() for each in (pixels, scaled)]
print(flat)
assert flat[0] > 0.8
assert flat[1] < 0.1
