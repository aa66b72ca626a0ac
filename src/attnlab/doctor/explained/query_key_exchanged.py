"""Cross attention lets each token of the answer (query) read the input (keys and values). With both
exchanged the output has a row for each input token; if input and answer have the same length, no
error is raised.

Paper: Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align and
Translate", 2015
"""

import torch
from torch.nn.functional import scaled_dot_product_attention as attend

answer, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
right, wrong = attend(answer, memory, memory), attend(memory, answer, answer)
print(right.shape, wrong.shape)
assert right.shape == answer.shape
assert wrong.shape == memory.shape
