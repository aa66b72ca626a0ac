"""A model learns what most labels say before it learns single ones by heart. Where it is sure and a
label says something else, the label is often wrong. Wrong labels in validation examples lower the
accuracy that can be reached at all.

Paper: Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", 2021
"""

import torch

x = torch.linspace(-1, 1, 200)
labels = (x > 0).float()
labels[::10] = 1 - labels[::10]  # every tenth label is wrong
w = torch.tensor(0.0)
for _ in range(300):
    w = w - 2.0 * ((torch.sigmoid(w * x) - labels) * x).mean()  # of the cross-entropy
contradicted = (torch.sigmoid(w * x) - labels).abs().topk(15).indices
print(contradicted.sort().values)
assert (contradicted % 10 == 0).all()
