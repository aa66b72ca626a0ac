"""A model that knows nothing should give each of V answers a probability of 1/V, which costs log V.
Large initial logits are confident guesses, mostly wrong, so the first steps are spent on unlearning
them.

Paper: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
networks", 2010
"""

import math

import torch

chance = torch.Generator().manual_seed(0)
logits, labels = torch.randn(1000, 10, generator=chance), torch.arange(1000) % 10
small, large = (torch.nn.functional.cross_entropy(scale * logits, labels) for scale in (0.1, 10))
print(small.item(), large.item(), math.log(10))
assert abs(small - math.log(10)) < 0.1
assert large > 3 * math.log(10)
