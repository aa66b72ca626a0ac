"""In training all tokens of the answer are in the decoder at once. Without a causal mask a position
attends to the token that it should predict, so training accuracy is perfect; in decoding that token
does not exist yet.

Paper: Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.3
"""

import torch
from torch.nn.functional import scaled_dot_product_attention as attend

x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
other = x + torch.tensor([0.0, 0, 0, 1])[:, None]  # only the last token differs
unmasked = (attend(x, x, x) - attend(other, other, other))[0, 0].abs().max()
masked = (attend(x, x, x, is_causal=True) - attend(other, other, other, is_causal=True))[0, 0].abs().max()
print(unmasked.item(), masked.item())
assert unmasked > 0.01
assert masked == 0
