"""A model that always gives the most frequent class reaches that class's share as accuracy. With
skewed classes this looks like success, although nothing depends on the input; the mean accuracy
over classes shows it.

Paper: Brodersen et al., "The Balanced Accuracy and Its Posterior Distribution", ICPR 2010
"""

import torch

labels = (torch.arange(100) < 90).long()
said = torch.ones(100, dtype=torch.long)
accuracy = (said == labels).float().mean()
by_class = torch.stack([(said[labels == c] == c).float().mean() for c in (0, 1)])
print(accuracy.item(), by_class.mean().item())
assert accuracy > 0.89
assert by_class.mean() == 0.5
