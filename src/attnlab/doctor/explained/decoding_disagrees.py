"""While every token is correct, teacher forcing and greedy decoding feed the decoder the same
tokens, so both have the same exact match. A difference means that decoding does something else than
training: another start token, another shift, a wrong mask or cache.

Paper: Ranzato et al., "Sequence Level Training with Recurrent Neural Networks", ICLR 2016
"""

import torch

truth = torch.tensor([1, 2, 3, 4])
forced = torch.tensor([0, 1, 2, 3]) + 1  # the model gives what it is fed plus one
token, free = 5, []  # decoding begins with 5, training began with 0
for _ in range(4):
    token = token + 1
    free.append(token)
print(forced.tolist(), free)
assert torch.equal(forced, truth)
assert free != truth.tolist()
