"""In a mean over n tokens one token counts 1/n, so the longer the input, the less a single deciding
token moves the readout. A maximum, or a token that attends to the others, does not depend on the
length.

Paper: Hahn, "Theoretical Limitations of Self-Attention in Neural Sequence Models", TACL 2020
"""

import torch

moved = {}
for length in (4, 64):
    x = torch.zeros(length)
    x[0] = 1  # the token that decides
    moved[length] = (x.mean().item(), x.amax().item())
print(moved)
assert moved == {4: (1 / 4, 1), 64: (1 / 64, 1)}
