"""The loss rewards confidence and accuracy does not, so the epoch with the lowest loss need not be
the one with the most correct answers. Late in training accuracy often still rises while a few
confident errors raise the loss.

Paper: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017
"""

import torch

# the probability of the true class of two, for three examples
early, late = torch.tensor([0.45, 0.45, 0.99]), torch.tensor([0.55, 0.55, 0.55])
losses = [-p.log().mean().item() for p in (early, late)]
correct = [(p > 0.5).float().mean().item() for p in (early, late)]
print(losses, correct)
assert losses[0] < losses[1]
assert correct[0] < correct[1]
