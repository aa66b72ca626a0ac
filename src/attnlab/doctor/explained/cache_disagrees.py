"""Decoding with a cache hands the model one token at a time, so its position must be counted
outside. If each new token gets the first position, or the cache drops keys, the model computes
something it was not trained for.
"""

import torch

torch.manual_seed(0)
tokens, places = torch.randn(5, 8), torch.nn.Embedding(5, 8)
full = tokens + places(torch.arange(5))
cached = torch.stack([token + places(torch.tensor(0)) for token in tokens])  # each is the first of its pass
differs = (full - cached).abs().amax(dim=1) > 0
print(differs)
assert differs.tolist() == [False, True, True, True, True]
