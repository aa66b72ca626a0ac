"""Token and position vectors are added, so the larger of them decides the direction of the sum. If
positions are much larger, different tokens at one position look the same to the model.
"""

import torch

chance = torch.Generator().manual_seed(0)
tokens, place = torch.randn(2, 32, generator=chance), torch.randn(32, generator=chance)
alike = {}
for scale in (1, 30):
    first, second = tokens + scale * place
    alike[scale] = torch.cosine_similarity(first, second, dim=0).item()
print(alike)  # of two different tokens at one position
assert alike[1] < 0.9
assert alike[30] > 0.99
