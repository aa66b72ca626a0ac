"""Where the input does not reach the output, only the bias of the readout is learned, and the best
bias is the logarithm of how often each class occurs. The loss then falls to the entropy of the
labels and stops there.
"""

import torch

labels = torch.tensor([0, 0, 0, 1, 2])
share = labels.bincount() / 5
logits = share.log().expand(5, 3)  # the same for every input
loss, entropy = torch.nn.functional.cross_entropy(logits, labels), -(share * share.log()).sum()
print(logits.argmax(dim=1).tolist(), loss.item(), entropy.item())
assert logits.argmax(dim=1).tolist() == [0, 0, 0, 0, 0]
assert torch.isclose(loss, entropy)
