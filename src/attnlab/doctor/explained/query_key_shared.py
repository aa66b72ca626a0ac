"""With q = k the scores are symmetric, so a token cannot look at another without being looked at as
strongly. The score of a token with itself is its squared length, usually the largest, so most
weight stays where it is.

Paper: Kitaev, Kaiser and Levskaya, "Reformer: The Efficient Transformer", ICLR 2020
"""

import torch

q = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))
scores = q @ q.T / 32**0.5
own = scores.softmax(dim=-1).diagonal().mean()
print(own.item(), 1 / 16)  # the weight of the own token, and an even one
assert torch.allclose(scores, scores.T)
assert own > 0.5
