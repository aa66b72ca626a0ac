"""Heads of models of others, taken out for good.

As for models of ours (``attnlab.models.surgery``), the rows of a head's queries, keys and values go, and so
do the columns of the map that mixes heads; what a constant in the place of the head's z adds to the output
goes into this map's bias. That is possible where the weights of heads are known to lie one after the other:
in torch's ``nn.MultiheadAttention``, and between the maps that ``attnlab.foreign.projections`` knows.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.errors import LabError
from attnlab.foreign import observed
from attnlab.foreign.projections import Projections, find_projections

_COUNTS = ("num_heads", "num_attention_heads")
_WIDTHS = ("all_head_size", "attn_dim", "split_size")
"""Attributes of attentions that say how many heads there are, and how wide they are together."""


class NoHeads(nn.Module):
    """What is left of an attention without heads: the same for every token.

    It gives what the attention gave: a tensor, or a tuple with so many None behind it.
    """

    in_proj_bias = None  # so that torch's layers leave their fast path alone

    def __init__(self, bias: Float[Tensor, "D"], form: tuple[bool, int], *, batch_first: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias)
        self.form = form
        self.batch_first = batch_first

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        x = next(each for each in (*args, *kwargs.values()) if isinstance(each, Tensor))
        out = self.bias.expand(*x.shape[:-1], -1)
        packed, others = self.form
        return (out, *[None] * others) if packed else out


@torch.no_grad()
def cut_attention(model: nn.Module, path: str, gone: list[int], constant: Float[Tensor, "H K"]) -> None:
    """Take the heads ``gone`` out of the attention at ``path``, with ``constant`` in the place of z."""
    attention = model.get_submodule(path)
    taps: observed.AttentionTaps = getattr(attention, observed.CHILD)
    output: Any
    kept = [index for index in range(taps.heads) if index not in gone]
    if isinstance(attention, nn.MultiheadAttention):
        output = attention.out_proj
        _cut_multihead(attention, kept)
    else:
        maps = _known(model, path, taps.heads)
        output = maps.output
        for each in maps.inputs:
            _cut_input(each, kept, taps.heads, parts=3 // len(maps.inputs))
        _set_sizes(attention, taps.heads, len(kept), constant.shape[1])
    _cut_output(output, kept, gone, constant)
    if kept:
        taps.heads = len(kept)
        return
    if taps.known is None:
        raise LabError(
            f"the attention {path} gives its patterns too, so it cannot lose its last head; keep one of it"
        )
    bias = output.bias.detach() if output in attention.children() else output.bias.new_zeros(0)
    first = bool(getattr(attention, "batch_first", True))
    _replace(model, path, NoHeads(bias.clone(), taps.known, batch_first=first))


def leave_fast_paths(model: nn.Module) -> None:
    """Torch's encoders would read the weights of an attention that is not there as it was."""
    for part in model.modules():
        if isinstance(part, nn.TransformerEncoder):
            part.use_nested_tensor = False


def _known(model: nn.Module, path: str, heads: int) -> Projections:
    """The maps around an attention, if they can be cut by head."""
    maps = find_projections(model, path)
    name = type(model.get_submodule(path)).__name__
    if maps is None:
        raise LabError(
            f"how {path} ({name}) keeps the weights of its heads is not known, so none can be cut; take "
            "heads out by without(), which needs no weights"
        )
    widths = {observed.out_width(each) * len(maps.inputs) // 3 for each in maps.inputs}
    if len(widths) > 1:
        raise LabError(
            f"heads of {path} ({name}) share keys and values, so the weights of one cannot be cut; take "
            "heads out by without(), which needs no weights"
        )
    if min(widths) % heads:
        raise LabError(
            f"{path} ({name}) does not make as many queries, keys and values for each of its {heads} "
            "heads, so none can be cut; take heads out by without(), which needs no weights"
        )
    return maps


def _cut_multihead(attention: nn.MultiheadAttention, kept: list[int]) -> None:
    """Its projections become three matrices, as torch has them where widths differ."""
    packed = attention.in_proj_weight
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    weights = [getattr(attention, name) for name in names] if packed is None else packed.chunk(3)
    rows = _numbers(kept, attention.head_dim, packed if packed is not None else weights[0])
    for name, weight in zip(names, weights, strict=True):
        setattr(attention, name, nn.Parameter(weight[rows]))
    attention.register_parameter("in_proj_weight", None)
    attention._qkv_same_embed_dim = False
    if attention.in_proj_bias is not None:
        attention.in_proj_bias = nn.Parameter(
            torch.cat([part[rows] for part in attention.in_proj_bias.chunk(3)])
        )
    for name in ("bias_k", "bias_v"):
        if getattr(attention, name) is not None:
            setattr(attention, name, nn.Parameter(getattr(attention, name)[..., rows]))
    attention.num_heads = len(kept)


def _cut_input(each: Any, kept: list[int], heads: int, *, parts: int) -> None:
    """Keep the rows of heads in each of the ``parts`` of a map: one, or queries, keys and values."""
    width = observed.out_width(each) // parts
    rows = torch.cat([_numbers(kept, width // heads, each.weight) + part * width for part in range(parts)])
    _set(each, _turned(each)[rows], each.bias if each.bias is None else each.bias[rows])


def _cut_output(each: Any, kept: list[int], gone: list[int], constant: Float[Tensor, "H K"]) -> None:
    """Keep the columns of heads; what the others add goes into the bias."""
    weight, width = _turned(each), constant.shape[1]
    own = constant[_numbers(gone, 1, weight)].flatten().to(weight.dtype)
    added = weight[:, _numbers(gone, width, weight)] @ own
    bias = added if each.bias is None else each.bias + added
    _set(each, weight[:, _numbers(kept, width, weight)], bias)


def _numbers(heads: list[int], width: int, like: Tensor) -> Tensor:
    """The rows that belong to ``heads``."""
    first = torch.tensor(heads, dtype=torch.long, device=like.device)[:, None] * width
    return (first + torch.arange(width, device=like.device)).flatten()


def _turned(each: Any) -> Tensor:
    """The weight of a linear map, with a row for each number it gives."""
    weight: Tensor = each.weight
    return weight if isinstance(each, nn.Linear) else weight.T


def _set(each: Any, weight: Tensor, bias: Tensor | None) -> None:
    sizes = ("out_features", "in_features") if isinstance(each, nn.Linear) else ("nf", "nx")
    for name, size in zip(sizes, weight.shape, strict=True):
        setattr(each, name, size)
    each.weight = nn.Parameter((weight if isinstance(each, nn.Linear) else weight.T).contiguous())
    each.bias = None if bias is None else nn.Parameter(bias.detach().clone())


def _set_sizes(attention: Any, before: int, after: int, width: int) -> None:
    """Tell an attention how many heads it has."""
    for names, unit in ((_COUNTS, 1), (_WIDTHS, width)):
        for name in names:
            if getattr(attention, name, None) == before * unit:
                setattr(attention, name, after * unit)


def _replace(model: nn.Module, path: str, new: nn.Module) -> None:
    holder, _, name = path.rpartition(".")
    setattr(model.get_submodule(holder), name, new)
