"""A boolean mask means opposite things in torch: in `scaled_dot_product_attention` true lets a
query look, in `MultiheadAttention` true hides the key. With the wrong one tokens see what follows
them and nothing before.
"""

import torch

torch.manual_seed(0)
x, attention = torch.randn(1, 4, 8), torch.nn.MultiheadAttention(8, 1, batch_first=True)
visible = torch.ones(4, 4, dtype=torch.bool).tril()
_, right = attention(x, x, x, attn_mask=~visible)
_, wrong = attention(x, x, x, attn_mask=visible)
print(right[0, 0], wrong[0, 0])  # what the first token sees
assert right[0, 0].tolist() == [1, 0, 0, 0]
assert wrong[0, 0, 0] == 0
