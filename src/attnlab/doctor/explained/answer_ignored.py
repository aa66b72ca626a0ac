"""A loss that ignores a number, as it should the one of padding, gives no gradient where that number
is wanted. If it is also an answer, such as the digit 0, the model is never asked for it and never
learns to give it; a loss and an accuracy that both ignore it look perfect.
"""

import torch

logits, targets = torch.zeros(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 0])
loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=0)
(slope,) = torch.autograd.grad(loss, logits)
print(slope)
assert (slope.abs().sum(dim=1) > 0).tolist() == [False, True, True, False]
