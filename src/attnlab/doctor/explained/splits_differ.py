"""Validation accuracy says how a model does on examples drawn like the validation examples. If
training examples are drawn otherwise, shorter or from another source, a fall between the two is no
overfitting, and more training does not mend it.

Paper: Rabanser, Günnemann and Lipton, "Failing Loudly: An Empirical Study of Methods for Detecting
Dataset Shift", NeurIPS 2019
"""

import torch

x = torch.linspace(0, 2, 200)
y = (x - 1) ** 2
train, valid = x < 1, x >= 1  # the same curve, seen on one side
columns = torch.stack((x, torch.ones(200)), dim=1)
line = torch.linalg.lstsq(columns[train], y[train]).solution
errors = [(columns[part] @ line - y[part]).square().mean().item() for part in (train, valid)]
print(errors)
assert errors[1] > 100 * errors[0]
