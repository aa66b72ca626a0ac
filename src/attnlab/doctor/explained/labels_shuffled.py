"""If labels are shuffled against their inputs, there is nothing to learn but single examples. A large
model learns them by heart all the same, so training accuracy rises while validation accuracy stays
that of guessing.

Paper: Zhang et al., "Understanding deep learning requires rethinking generalization", ICLR 2017
"""

import torch

torch.manual_seed(0)
x, right = torch.randn(600, 300), {}
for name in ("labels", "shuffled"):
    y = x[:, 0].sign() if name == "labels" else x[torch.randperm(600), 0].sign()
    w = torch.linalg.lstsq(x[:300], y[:300]).solution  # as many weights as examples
    right[name] = [
        (x[part] @ w).sign().eq(y[part]).float().mean().item() for part in (slice(300), slice(300, 600))
    ]
print(right)
assert right["shuffled"][0] > 0.99
assert abs(right["shuffled"][1] - 0.5) < 0.1
