"""The tokens that are fed are the answer shifted by one, so the token after a position is exactly
the one that the position should predict. A mask that is one diagonal too wide gives it away, and
the model learns to copy.
"""

import torch

answer = torch.tensor([7, 3, 9, 4])
fed = torch.tensor([0, 7, 3, 9])  # a start token, then the answer
visible = torch.ones(4, 4, dtype=torch.bool).tril(1)  # tril() would be right
said = [fed[row].tolist()[-1] for row in visible]  # the last token that each position sees
print(said)
assert said[:3] == answer.tolist()[:3]
