"""A module as a ``Model`` whose attentions cannot be seen: its answers alone can be asked for."""

from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from attnlab.foreign.model import Call
from attnlab.model import Model, Site


class PlainModel(Model):
    """A copy of ``module``, called with inputs by ``names`` or by their order."""

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.inner = deepcopy(module).eval()
        self._named = Call(names)

    @property
    def called(self) -> str:
        return type(self.inner).__name__

    def forward(self, *inputs: Any) -> Tensor:
        return self._named.logits(self._named(self.inner, inputs))

    def sites(self) -> list[Site]:
        return []
