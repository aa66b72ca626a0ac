"""The weights of a query are shares of its keys, so they must sum to 1 over the keys, the last
axis. Along another axis keys compete for queries instead; the shapes are the same, so nothing
fails.
"""

import torch

scores = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))  # (queries, keys)
right, wrong = scores.softmax(dim=-1), scores.softmax(dim=-2)
print(right.sum(dim=-1), wrong.sum(dim=-1))
assert torch.allclose(right.sum(dim=-1), torch.ones(5))
assert not torch.allclose(wrong.sum(dim=-1), torch.ones(5), atol=0.1)
