"""What has a rule is learned faster than what has none: a model that fits true labels uses what examples
have in common, and one that fits shuffled labels has to learn each example by heart. Where both take the
same time, the labels have nothing to do with the inputs, or nothing that this model can see.

Paper: Zhang, Bengio, Hardt, Recht and Vinyals, "Understanding Deep Learning Requires Rethinking
Generalization" (2017).
"""

import torch
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
inputs, losses = torch.randn(256, 8), []
for labels in ((inputs[:, 0] > 0).long(), torch.randint(2, (256,))):  # with a rule, and without
    model = Sequential(Linear(8, 64), ReLU(), Linear(64, 2))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        optimiser.zero_grad()
        torch.autograd.backward(loss := cross_entropy(model(inputs), labels))
        optimiser.step()
    losses.append(loss.item())
print("loss after 100 steps:", losses)
assert losses[0] < 0.3 * losses[1]
