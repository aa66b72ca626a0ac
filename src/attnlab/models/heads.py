"""The heads of any model, found by the attention modules it holds."""

from torch import nn

from attnlab.attention import Attention
from attnlab.notation import Head, parse_head


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention of ``model`` by its path, in the order of computation."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Attention)}


def heads(model: nn.Module) -> list[Head]:
    """Every head of ``model``, in the order of computation."""
    return [
        parse_head(f"{path}.{index}")
        for path, attention in attentions(model).items()
        for index in range(attention.heads)
    ]
