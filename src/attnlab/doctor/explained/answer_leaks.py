"""A causal mask protects attention only. Anything else that mixes positions, such as a norm or a
mean over all tokens or a convolution with padding on both sides, lets later tokens through as well.
"""

import torch

x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
other = x + torch.tensor([0.0, 0, 0, 1])[:, None]  # only the last token differs
norms = {"over all tokens": torch.nn.LayerNorm((4, 8)), "of each token": torch.nn.LayerNorm(8)}
moved = {name: (norm(x) - norm(other))[0, 0].abs().max().item() for name, norm in norms.items()}
print(moved)  # of the first token
assert moved["over all tokens"] > 0.01
assert moved["of each token"] == 0
