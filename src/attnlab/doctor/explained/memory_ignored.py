"""If cross attention contributes nothing, the decoder sees only its own tokens and becomes a
language model of the answers. It learns which answers are common; the same answer comes out for
every input.
"""

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerDecoderLayer(8, 2, batch_first=True).eval()
torch.nn.init.zeros_(layer.multihead_attn.out_proj.weight)
x = torch.randn(1, 3, 8)
one, two = (layer(x, torch.randn(1, 5, 8)) for _ in range(2))  # two memories
print((one - two).abs().max().item())
assert torch.equal(one, two)
