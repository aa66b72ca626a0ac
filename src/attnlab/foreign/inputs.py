"""Inputs to try a module on, for modules whose inputs are known."""

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import InputError

_ROWS, _LENGTH = 2, 7
_INPUTS = {
    nn.MultiheadAttention: (3, (0, 1, 2)),
    nn.TransformerDecoder: (2, (1,)),
    nn.TransformerDecoderLayer: (2, (1,)),
    nn.Transformer: (2, (0,)),
    nn.TransformerEncoder: (1, (0,)),
    nn.TransformerEncoderLayer: (1, (0,)),
}
"""How many vectors a token torch's modules take, and the numbers of those that are looked at."""


def vector_inputs(module: nn.Module) -> tuple[int, ...] | None:
    """Which inputs of one of torch's modules hold what is looked at; None of any other module."""
    return _INPUTS[type(module)][1] if type(module) in _INPUTS else None


def made_inputs(module: nn.Module) -> dict[str, Tensor]:
    """Inputs by the names of the arguments, or by their numbers where the order counts."""
    generator = torch.Generator().manual_seed(0)
    if type(module) in _INPUTS:
        count, _ = _INPUTS[type(module)]
        (width,) = {part.embed_dim for part in module.modules() if isinstance(part, nn.MultiheadAttention)}
        first = torch.randn(_ROWS, _LENGTH, width, generator=generator)
        second = torch.randn(_ROWS, _LENGTH, width, generator=generator)
        inputs = [first, second, second][:count]
        if isinstance(module, nn.MultiheadAttention):
            inputs[1:] = [torch.randn(_ROWS, _LENGTH, each) for each in (module.kdim, module.vdim)]
        return {str(n): tensor for n, tensor in enumerate(inputs)}
    size = _image_size(module)
    if size is not None:
        name = getattr(module, "main_input_name", "0")
        return {name: torch.rand(_ROWS, *size, generator=generator)}
    known: Any = getattr(module, "dummy_inputs", None)
    if known is not None:
        return {name: value for name, value in known.items() if isinstance(value, Tensor)}
    raise InputError(
        f"what a {type(module).__name__} takes is not known; give a few examples: wrap(module, inputs=(x,))"
    )


def _image_size(module: nn.Module) -> tuple[int, int, int] | None:
    """Channels, height and width of the images that a model of timm or of Hugging Face takes."""
    embed: Any = getattr(module, "patch_embed", None)
    if embed is not None and getattr(embed, "img_size", None) and isinstance(embed.proj, nn.Conv2d):
        return embed.proj.in_channels, *embed.img_size
    config: Any = getattr(module, "config", None)
    if getattr(module, "main_input_name", "") == "pixel_values" and hasattr(config, "image_size"):
        size = config.image_size
        height, width = size if isinstance(size, (tuple, list)) else (size, size)
        return config.num_channels, height, width
    return None
