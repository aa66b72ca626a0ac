"""A model that is whole learns a handful of examples by heart in a few hundred steps, whatever the task is.
Where that fails at every rate, no more data or time will help: answers are not decided by what the model is
given, the input does not reach the output, or the loss is not of the answers.
"""

import torch
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs, right = torch.randn(8, 6).repeat(2, 1), []  # 8 inputs, each of them twice
for labels in (torch.arange(16) % 8, torch.arange(16) // 8):  # with the same answer, and with two
    model = Sequential(Linear(6, 32), ReLU(), Linear(32, 8))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        torch.autograd.backward(cross_entropy(model(inputs), labels))
        optimiser.step()
    right.append((model(inputs).argmax(dim=1) == labels).float().mean().item())
print("by heart:", right)
assert right[0] == 1 > 0.5 >= right[1]  # no model says two things of the same input
