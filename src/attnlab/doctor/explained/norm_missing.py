"""Each block adds its output to the residual stream, so the size of values grows with depth, and
faster the larger they are. A norm in front of each block keeps what a block sees at one size.

Paper: Xiong et al., "On Layer Normalization in the Transformer Architecture", ICML 2020
"""

import torch

chance = torch.Generator().manual_seed(0)
x = y = torch.randn(5, 16, generator=chance)
for _ in range(12):
    weight = torch.randn(16, 16, generator=chance) / 4  # keeps the size of what it is given
    x = x + x @ weight
    y = y + torch.nn.functional.layer_norm(y, (16,)) @ weight
print(x.std().item(), y.std().item())
assert x.std() > 5 * y.std()
