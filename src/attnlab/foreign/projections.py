"""The maps around an attention of others: those that make queries, keys and values, and the one that mixes.

Known are, by the names of their parts,

    one map for all three         qkv, proj                                   timm
                                  c_attn, c_proj                              GPT-2, weights turned
    one map each                  query, key, value, and output.dense beside  BERT and its like
                                  q_proj, k_proj, v_proj, o_proj or out_proj  ViT, Llama and their like

Torch's ``nn.MultiheadAttention`` holds its weights itself and is not one of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

_NAMES = (
    ("qkv", "proj"),
    ("c_attn", "c_proj"),
    ("query", "key", "value", "beside.output.dense"),
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
)


@dataclass(frozen=True)
class Projections:
    """``inputs`` is one map, of queries, keys and values in this order, or one for each of them."""

    inputs: tuple[nn.Module, ...]
    output: nn.Module


def find_projections(module: nn.Module, path: str) -> Projections | None:
    """The maps around the attention at ``path`` of ``module``; None where they have other names."""
    own = dict(module.get_submodule(path).named_children())
    own |= {f"beside.{name}": each for name, each in _beside(module, path)}
    for *inputs, output in _NAMES:
        if all(_is_map(own.get(name)) for name in (*inputs, output)):
            return Projections(tuple(own[name] for name in inputs), own[output])
    return None


def _beside(module: nn.Module, path: str) -> Iterable[tuple[str, nn.Module]]:
    """The parts of the module that holds the attention."""
    return module.get_submodule(path.rpartition(".")[0]).named_modules()


def _is_map(module: nn.Module | None) -> bool:
    """Torch's linear map, or that of GPT-2."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
