"""How far training gets depends on the sum of its rates, and steps with a rate near zero add
nothing to it. A schedule that is shorter than the training therefore wastes all steps behind its
end.

Paper: Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022
"""

import torch

w, path = torch.tensor(1.0), []
for step in range(200):
    rate = 0.1 * max(0.0, 1 - step / 50)  # a schedule of 50 steps
    w = w - rate * w
    path.append(w.item())
print(path[25], path[50], path[-1])
assert path[-1] == path[50]
