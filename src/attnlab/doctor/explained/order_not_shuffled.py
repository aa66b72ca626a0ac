"""A step of gradient descent is only right on average over batches that are drawn at random. If
examples come in the order of their answers, each batch asks for one answer, and what it teaches is
forgotten in the next.

Paper: Bengio, "Practical Recommendations for Gradient-Based Training of Deep Architectures", 2012
"""

import torch

torch.manual_seed(0)
labels, right = torch.arange(400) // 100, {}
for name, order in (("sorted", torch.arange(400)), ("shuffled", torch.randperm(400))):
    logits = torch.zeros(4)
    for number in range(20):
        batch = labels[order[20 * number :][:20]]
        wanted = torch.nn.functional.one_hot(batch, 4).float().mean(dim=0)
        logits = logits + 0.5 * (wanted - logits.softmax(0))  # against the gradient of cross-entropy
    right[name] = logits.softmax(0)[3].item()  # of a class that a quarter of the examples have
print(right)
assert right["sorted"] > 0.5
assert right["shuffled"] < 0.4
