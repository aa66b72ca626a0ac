"""Models of others, with what can be asked of their heads as methods.

vit = attnlab.wrap(timm.create_model("vit_tiny_patch16_224", num_classes=10), reads="cls")
data = attnlab.examples(images, labels)
vit.heads(data)                          # where every head looks
vit.ablate(data)                         # what is lost without each of them
with vit.without("blocks.3.attn.1"):
    vit(images)
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from attnlab.analysis.ablate.ablation import Ablation, AblationResult, ablate
from attnlab.analysis.ablate.baselines import make_baseline, mask_without, masked
from attnlab.analysis.choices import BaselineName
from attnlab.analysis.heads import HeadsResult, describe_heads
from attnlab.analysis.subjects import Subject
from attnlab.errors import InputError
from attnlab.foreign.model import Output, Reads, Wrapped
from attnlab.foreign.wrap import wrapped
from attnlab.progress import silent
from attnlab.sets import Examples

BASELINES: tuple[BaselineName, ...] = ("mean", "zero")


@final
class AnyModel(Wrapped):
    """A copy of somebody's module, made by ``attnlab.wrap``."""

    def heads(self, data: Examples) -> HeadsResult:
        """Where every head looks on ``data``, each number beside that of uniform attention."""
        return describe_heads(_subject(self, data))

    def ablate(
        self,
        data: Examples,
        *,
        training: Examples | None = None,
        baselines: Sequence[BaselineName] = BASELINES,
        heads: Sequence[str] = (),
        pairs: bool = False,
        shapley: int = 0,
        seed: int = 0,
    ) -> AblationResult:
        """What is lost on ``data`` without every head, alone and, if so asked, together with others.

        ``training`` is what the mean and the optimal constants are made from; without it, ``data`` itself.
        """
        plan = Ablation(
            baselines=tuple(baselines), heads=tuple(heads), pairs=pairs, orders=shapley, seed=seed
        )
        return ablate(_subject(self, data), data if training is None else training, plan)

    @contextmanager
    def without(
        self, *heads: str, to: BaselineName = "zero", data: Examples | None = None
    ) -> Iterator["AnyModel"]:
        """Take heads out for as long as the context is open.

        ``to`` is what takes the place of their output; all but zero are made from ``data``.
        """
        if to != "zero" and data is None:
            raise InputError(f"to is {to!r}, which is made from examples; give them as data")
        nothing = Examples((torch.zeros(1),), torch.zeros(1, dtype=torch.long))
        known = nothing if data is None else data
        baseline = make_baseline(to, _subject(self, known), known, 0, lambda _: silent)
        with masked(self, mask_without(self, heads), baseline):
            yield self


def wrap(
    module: nn.Module,
    *,
    inputs: Sequence[Any] | dict[str, Any] | None = None,
    reads: Reads = "mean",
    output: Output | None = None,
) -> AnyModel:
    """A model that computes what ``module`` does, whose heads can be recorded, edited and taken out.

    Torch's attention and transformers, timm's and Hugging Face's models, and modules that call
    ``F.scaled_dot_product_attention`` can be wrapped; ``module`` is left as it is. Outputs before and after
    are compared each time, and a copy that differs is refused.

    ``inputs`` are what to try the module on, by order or by name; those of torch's, timm's and Hugging
    Face's models are made up. ``reads`` says which tokens the output is made of: the first (cls), all alike
    (mean) or the last. ``output`` makes logits of what the module gives, if that is no tensor.
    """
    return wrapped(AnyModel, module, inputs=inputs, reads=reads, output=output)


def examples(inputs: Any, labels: Tensor | None = None) -> Examples:
    """Examples to ask a wrapped model: tensors and their labels, or a Dataset or DataLoader of such pairs.

    ``inputs`` is a tensor, or a tuple of those that the module takes. ``labels`` are numbers of classes
    (N,), or of tokens (N, T).
    """
    if labels is None:
        if isinstance(inputs, Dataset):
            inputs = torch.utils.data.DataLoader(inputs, batch_size=256)
        if not isinstance(inputs, Iterable) or isinstance(inputs, Tensor | tuple):
            raise InputError("there are no labels; give inputs and labels, a Dataset or a DataLoader")
        parts = [(given if isinstance(given, tuple | list) else [given], each) for given, each in inputs]
        if not parts:
            raise InputError("there are no examples to look at; give at least 1")
        columns = zip(*(given for given, _ in parts), strict=True)
        inputs, labels = tuple(map(torch.cat, columns)), torch.cat([each for _, each in parts])
    tensors = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if any(len(part) != len(labels) for part in tensors):
        sizes = ", ".join(str(len(part)) for part in tensors)
        raise InputError(f"there are {sizes} inputs for {len(labels)} labels; give one label for each")
    return Examples(tensors, labels)


def _subject(model: Wrapped, data: Examples) -> Subject:
    """Examples of one class are a group of their own."""
    if data.targets.dim() > 1:
        return Subject(model, data, {}, [str(place + 1) for place in range(data.targets.shape[1])])
    groups = {str(each): data.targets == each for each in sorted(set(data.targets.tolist()))}
    return Subject(model, data, groups, ["class"])
