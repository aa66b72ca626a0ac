"""The engine whose gradients are written by hand, on the memory of torch's parameters."""

from typing import final

import torch
from torch import Tensor

from attnlab.examples import Examples
from attnlab.explicit import Network, Parameters
from attnlab.model import Model
from attnlab.spec import Training
from attnlab.training.measuring import Measured, compare

NAMES = {
    "embed.linear.weight": "embed_weight",
    "embed.linear.bias": "embed_bias",
    "embed.positions": "positions",
    **{
        f"{path}.{kind}": f"{field}_{kind}"
        for path, field in {
            "encoder.0.self.query": "query",
            "encoder.0.self.key": "key",
            "encoder.0.self.value": "value",
            "encoder.0.feed.up": "expand",
            "encoder.0.feed.down": "contract",
            "readout": "readout",
        }.items()
        for kind in ("weight", "bias")
    },
}
"""Fields of the explicit network's parameters by the names of torch's."""


def shared_arrays(model: Model) -> Parameters:
    """The parameters of a patch attention model as arrays over the same memory."""
    arrays = {NAMES[name]: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    return Parameters(**arrays)


@final
class ExplicitEngine:
    """Gradients by hand, plain SGD."""

    def __init__(self, model: Model, training: Training) -> None:
        self._arrays = shared_arrays(model)
        self._training = training
        self._threads = 0
        self._use_threads()

    def step(self, batch: Examples, factor: float) -> tuple[float, float]:
        self._use_threads()
        loss, hits = self._network.step(
            batch.inputs[0].numpy(), batch.targets.numpy(), self._training.lr * factor
        )
        return loss, hits / len(batch)

    def measure(self, model: Model, examples: Examples) -> Measured:
        logits = torch.from_numpy(self._network.logits(examples.inputs[0].numpy()))
        return compare(logits, examples.targets)

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Plain SGD remembers nothing."""

    def _use_threads(self) -> None:
        """As many threads as torch has been told to use."""
        if self._threads != torch.get_num_threads():
            self._threads = torch.get_num_threads()
            self._network = Network(self._arrays, threads=self._threads)
