"""Each example has the same weight in the loss, so a class with 1% of the examples has 1% of the
influence. The model fits the frequent class first and may never separate the rare one.

Paper: Buda, Maki and Mazurowski, "A systematic study of the class imbalance problem in CNNs", 2018
"""

import torch

labels = (torch.arange(100) == 0).long()  # one example of class 1
said = torch.zeros(100, dtype=torch.long)
accuracy = (said == labels).float().mean()
found = (said[labels == 1] == 1).float().mean()
print(accuracy.item(), found.item())
assert accuracy > 0.98
assert found == 0
