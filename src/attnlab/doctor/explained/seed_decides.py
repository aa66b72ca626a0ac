"""Two trainings that differ in the seed alone differ in accuracy. If a difference between variants is
no larger than that, which one wins is decided by the seed; only several seeds of each can tell.

Paper: Bouthillier et al., "Accounting for Variance in Machine Learning Benchmarks", MLSys 2021
"""

import torch

torch.manual_seed(0)
accuracies = 0.9 + 0.02 * torch.randn(2, 1000)  # two variants that are the same, 1,000 seeds
wins = (accuracies[0] > accuracies[1]).float().mean().item()
single = (accuracies[0] - accuracies[1]).abs().median().item()
print(wins, single)
assert abs(wins - 0.5) < 0.05
assert single > 0.01  # a typical difference of one seed each, where there is none
