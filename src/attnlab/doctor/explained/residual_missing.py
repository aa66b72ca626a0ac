"""Attention returns averages of its inputs. Without the residual sum each layer averages what the
last one averaged, and within a few layers all tokens are the same vector.

Paper: Dong, Cordonnier and Loukas, "Attention is not all you need: pure attention loses rank", ICML
2021
"""

import torch
from torch.nn.functional import layer_norm
from torch.nn.functional import scaled_dot_product_attention as attend

x = y = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
for _ in range(6):
    x = attend(x, x, x)
    seen = layer_norm(y, (8,))
    y = y + attend(seen, seen, seen)
spread = [each.std(dim=1).mean().item() for each in (x, y)]
print(spread)  # between tokens, without and with the sum
assert spread[0] < 0.01
assert spread[1] > 0.5
