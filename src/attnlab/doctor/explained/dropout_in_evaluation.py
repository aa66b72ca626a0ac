"""Dropout sets random values to zero, which is meant for training only.
`torch.nn.functional.dropout` does so by default in evaluation as well, so answers are noisy and
worse than the model could give.

Paper: Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR
2014
"""

import torch

x, module = torch.ones(100), torch.nn.Dropout(0.5).eval()
torch.manual_seed(0)
called = torch.nn.functional.dropout(x, 0.5)  # training=True is its default
print(module(x)[:8], called[:8])
assert torch.equal(module(x), x)
assert set(called.tolist()) == {0, 2}
