"""The softmax gives every key that it sees a positive weight, padding included, so the answer
depends on how much padding a batch happens to need. The same example then has different logits in
different batches.
"""

import torch
from torch.nn.functional import pad
from torch.nn.functional import scaled_dot_product_attention as attend

x = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
keys = pad(x, (0, 0, 0, 5))  # five keys of padding
seen, hidden = attend(x, keys, keys), attend(x, keys, keys, attn_mask=(torch.arange(8) < 3).expand(3, 8))
print((seen - attend(x, x, x)).abs().max().item(), (hidden - attend(x, x, x)).abs().max().item())
assert not torch.allclose(seen, attend(x, x, x), atol=0.01)
assert torch.allclose(hidden, attend(x, x, x), atol=1e-5)
