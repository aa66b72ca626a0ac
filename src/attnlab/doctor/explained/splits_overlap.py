"""An example that the model was trained on can be answered from memory, so it says nothing about
new inputs. The more of the validation set was seen in training, the more its accuracy measures
memory.

Paper: Barz and Denzler, "Do We Train on Test Data? Purging CIFAR of Near-Duplicates", 2020
"""

import torch

chance = torch.Generator().manual_seed(0)
x, labels = torch.rand(400, 5, generator=chance), torch.randint(0, 2, (400,), generator=chance)  # no rule
nearest = torch.cdist(x, x[:200]).argmin(dim=1)  # a model that remembers the first 200
correct = (labels[nearest] == labels).float()
print(correct[:200].mean().item(), correct[200:].mean().item())
assert correct[:200].mean() == 1
assert correct[200:].mean() < 0.65
