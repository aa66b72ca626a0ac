"""For an answer that never occurs in training the gradient has the same sign at every example: each
step lowers its logit. The model learns never to give it, whatever the input.
"""

import torch

logits = torch.zeros(6, 3, requires_grad=True)
labels = torch.tensor([0, 1, 0, 1, 0, 1])  # class 2 does not occur
loss = torch.nn.functional.cross_entropy(logits, labels)
(slope,) = torch.autograd.grad(loss, logits)
print(slope[:, 2])
assert (slope[:, 2] > 0).all()
