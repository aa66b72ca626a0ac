"""A trained vector for each place gets a gradient only from inputs that reach the place. Behind the longest
training input the vectors are still what they were drawn as, so the model reads noise there.
"""

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(8, 4)  # places 0 to 7
first = table.weight.detach().clone()
sgd = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(20):
    length = int(torch.randint(2, 6, ()))  # training inputs have at most 5 tokens
    sgd.zero_grad()
    (table(torch.arange(length)) - 1).square().sum().backward()
    sgd.step()
moved = (table.weight - first).norm(dim=1) > 0
print(moved.tolist())  # by place
assert moved.tolist() == [True] * 5 + [False] * 3
