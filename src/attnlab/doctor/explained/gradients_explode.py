"""The gradient of an early layer is a product over all later ones. If each factor is above 1 it
explodes: one step throws the early layers far away, and a clip that stops it leaves nothing for the
others.

Paper: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", ICML
2013
"""

import torch

torch.manual_seed(0)
x, layers = torch.randn(8, 16), [torch.nn.Linear(16, 16) for _ in range(12)]
for layer in layers:
    torch.nn.init.normal_(layer.weight, std=3 / 16**0.5)
    x = layer(x)
slopes = torch.autograd.grad(x.sum(), [layer.bias for layer in layers])
print([f"{slope.norm():.1g}" for slope in slopes])
assert slopes[0].norm() > 1000 * slopes[-1].norm()
