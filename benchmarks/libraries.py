"""Libraries that benchmarks are held against, imported where torchvision may be built for another torch."""

import importlib
import sys
from typing import Any

import torch


def library(name: str) -> Any:
    """timm or transformers. Both import torchvision; they use none of its operators.

    Where these cannot be loaded they are declared, and only there: to declare one twice ends the process.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        pass
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for each in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[each]
        for operator in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{operator}", "(Tensor boxes, Tensor scores, float iou) -> Tensor"
            )
    return importlib.import_module(name)
