"""A decoder is trained to give the next token. If the token that it is fed at a position is the one
that it should give there, copying its input is a perfect answer, and nothing is left of it in free
decoding.

Paper: Williams and Zipser, "A Learning Algorithm for Continually Running Fully Recurrent Networks",
1989
"""

import torch

targets = torch.randint(1, 10, (50, 4))
start = torch.zeros(50, 1, dtype=torch.long)
shifted = torch.cat((start, targets[:, :-1]), dim=1)
# a model that copies what it is fed
correct = [(fed == targets).all(dim=1).float().mean().item() for fed in (targets, shifted)]
print(correct)
assert correct == [1, 0]
