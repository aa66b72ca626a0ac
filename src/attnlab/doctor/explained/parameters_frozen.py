"""Weights change only if the optimiser holds them and the loss depends on them. A part that was
made after the optimiser, is kept in a plain list, or stands behind `detach()` keeps its random
initial values without an error.
"""

import torch

torch.manual_seed(0)
first, second = torch.nn.Linear(3, 5), torch.nn.Linear(5, 2)
before = first.weight.clone(), second.weight.clone()
optimiser = torch.optim.SGD(second.parameters(), lr=0.1)  # the first layer is missing
second(torch.relu(first(torch.randn(7, 3)))).square().mean().backward()
optimiser.step()
print(torch.equal(first.weight, before[0]), torch.equal(second.weight, before[1]))
assert torch.equal(first.weight, before[0])
assert not torch.equal(second.weight, before[1])
