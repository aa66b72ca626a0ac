"""Devices: the one place that knows them by name.

A spec names the device that a model is trained on: ``cpu``, ``auto``, which is the accelerator if torch
finds one, or any device of torch such as ``cuda:1`` or ``mps``. Nobody else asks for a device: modules
create tensors on the device of their inputs or weights, examples are moved where they meet a model
(``Examples.to``), and what analyses find is brought back to the CPU.

Weights and data are drawn on the CPU, so that a seed means the same everywhere. Dropout and random places
are drawn on the device, by the generator of the device.
"""

from typing import TYPE_CHECKING, TypeVar

from attnlab.errors import LabError, brief
from attnlab.lazy import Later

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    M = TypeVar("M", bound=nn.Module)
else:
    torch = Later("torch")
    M = TypeVar("M")

CPU = "cpu"
AUTO = "auto"

_FUSED = (CPU, "cuda")  # where torch's optimisers have one kernel for all weights
_SINGLE = ("mps",)  # where there is no float64


def find_device(name: str) -> "torch.device":
    """The device that a spec or a user names; one that is not there is refused."""
    if name == AUTO:
        found = torch.accelerator.current_accelerator(check_available=True)
        name = CPU if found is None else str(found)
    try:
        tried = torch.zeros(1, device=name)
        tried.item()  # which a device without values refuses
    except (RuntimeError, AssertionError, ImportError) as error:  # a build without CUDA asserts it
        reason = "torch cannot use it here" if _is_known(name) else "torch knows no such device"
        raise LabError(f"device is {brief(name)}, but {reason}; use {_usable()}") from error
    return tried.device


def _is_known(name: str) -> bool:
    try:
        torch.device(name)
    except RuntimeError:
        return False
    return True


def _usable() -> str:
    found = torch.accelerator.current_accelerator(check_available=True)
    return " or ".join(repr(each) for each in (CPU, AUTO, found and str(found)) if each)


def device_of(module: "nn.Module") -> "torch.device":
    """Where the weights of ``module`` are; the CPU, if it has none."""
    first = next(module.parameters(), None)
    return torch.device(CPU) if first is None else first.device


def is_cpu(device: "torch.device") -> bool:
    return device.type == CPU


def to_device_of(module: "nn.Module", *tensors: "Tensor") -> "tuple[Tensor, ...]":
    """Inputs where ``module`` can take them."""
    device = device_of(module)
    return tuple(each.to(device) for each in tensors)


def place(model: "M", device: "torch.device") -> "M":
    """``model`` itself, moved to ``device``."""
    if widest(device) != torch.float64:  # fixed frequencies, which are kept as exact as they can be
        for module in model.modules():
            for name, fixed in module.named_buffers(recurse=False):
                setattr(module, name, fixed.to(widest(device)) if fixed.is_floating_point() else fixed)
    return model.to(device)


def widest(device: "torch.device") -> "torch.dtype":
    """The widest numbers that ``device`` has."""
    return torch.float32 if device.type in _SINGLE else torch.float64


def copy_to_cpu(tensors: "dict[str, Tensor]") -> "dict[str, Tensor]":
    """Copies that no later step changes."""
    return {name: each.detach().to(CPU, copy=True) for name, each in tensors.items()}


def has_fused_steps(device: "torch.device") -> bool:
    return device.type in _FUSED


def has_fast_bfloat16(device: "torch.device") -> bool:
    """Whether products in bfloat16 are faster than in float32, as far as torch can tell."""
    if is_cpu(device):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def generator_state(device: "torch.device") -> "dict[str, Tensor]":
    """The states of the generators that decide how a training on ``device`` goes on."""
    states = {"generator": torch.get_rng_state()}
    if not is_cpu(device):
        states["device_generator"] = torch.get_device_module(device).get_rng_state(device)
    return states


def set_generator_state(device: "torch.device", states: "dict[str, Tensor]") -> None:
    """Take up what ``generator_state`` gave; a training that began on the CPU has no state of a device."""
    torch.set_rng_state(states["generator"])
    if not is_cpu(device) and "device_generator" in states:
        torch.get_device_module(device).set_rng_state(states["device_generator"], device)
