"""Without a start token the first token of the answer is given to the model instead of predicted,
so it is neither trained nor scored. The reported accuracy is that of the rest of the answer;
answers decoded from the input alone have a first token by chance.

Paper: Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks", 2014
"""

import torch

truth = torch.tensor([[3, 7], [5, 1], [8, 2]])
said = torch.tensor([[9, 7], [5, 1], [4, 2]])  # decoded from the input alone
reported = (said[:, 1:] == truth[:, 1:]).all(dim=1).float().mean()
whole = (said == truth).all(dim=1).float().mean()
print(reported.item(), whole.item())
assert reported == 1
assert whole < 0.5
