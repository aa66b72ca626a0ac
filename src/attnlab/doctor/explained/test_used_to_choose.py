"""The best of many results on the same examples is partly the luckiest. If weights or variants are
chosen by the test examples, their accuracy there is too high; on fresh examples the luck is gone.

Paper: Cawley and Talbot, "On Over-fitting in Model Selection and Subsequent Selection Bias in
Performance Evaluation", JMLR 2010
"""

import torch

torch.manual_seed(0)
labels = torch.randint(2, (400,))
guesses = torch.randint(2, (200, 400))  # 200 models that know nothing
test, fresh = ((guesses[:, part] == labels[part]).float().mean(1) for part in (slice(200), slice(200, 400)))
best = test.argmax()
print(test[best].item(), fresh[best].item())
assert test[best] > 0.58
assert abs(fresh[best] - 0.5) < 0.08
