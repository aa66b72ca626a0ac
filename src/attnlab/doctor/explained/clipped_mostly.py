"""Clipping scales a gradient that is longer than the limit down to it. If nearly all are longer,
every step has the same length whatever the gradient, and the limit acts as a learning rate that
nobody chose.

Paper: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", ICML
2013
"""

import torch

lengths = {}
for scale in (1.0, 100.0):
    w = torch.nn.Parameter(torch.zeros(3))
    w.grad = torch.full((3,), scale)
    torch.nn.utils.clip_grad_norm_([w], 0.1)
    lengths[scale] = w.grad.norm().item()
print(lengths)
assert abs(lengths[1.0] - lengths[100.0]) < 1e-4
