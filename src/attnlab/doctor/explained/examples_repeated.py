"""An example that is there k times counts k times in every gradient, and teaches nothing new after
the first time. What looks like many examples is a few with large weights, which are soon learned by
heart.

Paper: Lee et al., "Deduplicating Training Data Makes Language Models Better", ACL 2022
"""

import torch

torch.manual_seed(0)
errors, truth = {}, torch.randn(30)
for distinct in (20, 200):
    x = torch.randn(distinct, 30).repeat(200 // distinct, 1)  # 200 examples either way
    w = torch.linalg.pinv(x) @ (x @ truth)
    errors[distinct] = (torch.randn(500, 30) @ (w - truth)).square().mean().item()
print(errors)
assert errors[20] > 1
assert errors[200] < 1e-6
