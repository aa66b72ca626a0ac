"""A copy of somebody's module as a ``Model``. Its parts go by their own names."""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.errors import InputError, LabError
from attnlab.foreign import observed
from attnlab.foreign.cutting import cut_attention, leave_fast_paths
from attnlab.model import Model, Side, Site
from attnlab.taps import edit

W = TypeVar("W", bound="Wrapped")
Reads = Literal["cls", "mean", "last"]
Output = Callable[[Any], Tensor]

_PADDING: dict[Side, tuple[str, ...]] = {
    "input": ("attention_mask", "src_key_padding_mask", "key_padding_mask", "memory_key_padding_mask"),
    "answer": ("decoder_attention_mask", "tgt_key_padding_mask"),
}
"""Arguments that say what is padding: torch's are true there, Hugging Face's are 0."""


@dataclass(frozen=True)
class Call:
    """How a module is called, and what is made of what it gives.

    ``arguments`` are the names of the inputs, none if they go by their order; ``fixed`` ones are the same
    for all examples. Without ``batch_first`` examples lie along the second axis.
    """

    arguments: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    output: Output | None = None
    batch_first: bool = True

    def __call__(self, module: nn.Module, inputs: Sequence[Any]) -> Any:
        """What ``module`` gives."""
        fixed = self._fixed(module)
        if not self.arguments:
            return module(*inputs, **fixed)
        if len(self.arguments) != len(inputs):
            names = ", ".join(self.arguments)
            raise InputError(f"there are {len(inputs)} inputs; the model was wrapped with {names}")
        return module(**dict(zip(self.arguments, inputs, strict=True)), **fixed)

    def _fixed(self, module: nn.Module) -> dict[str, Any]:
        """What is fixed, where the module's weights are and as precise as they."""
        like = next(module.parameters(), None)
        return {
            name: value.to(like if value.is_floating_point() else like.device)
            if isinstance(value, Tensor) and like is not None
            else value
            for name, value in self.fixed.items()
        }

    def logits(self, given: Any) -> Tensor:
        """The tensor among what the module gives."""
        if self.output is not None:
            return self.output(given)
        for name in ("logits", "last_hidden_state"):
            found = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
            if isinstance(found, Tensor):
                return found
        first = given[0] if isinstance(given, tuple | list) else given
        if not isinstance(first, Tensor):
            raise InputError(f"the module gives a {type(given).__name__}; output= must make a tensor of it")
        return first

    def turned(self, inputs: Sequence[Any]) -> list[Any]:
        """``inputs`` with their first two axes exchanged; torch's masks of padding have examples first."""
        names = self.arguments or [""] * len(inputs)
        return [
            each.transpose(0, 1) if isinstance(each, Tensor) and not name.endswith("padding_mask") else each
            for name, each in zip(names, inputs, strict=True)
        ]


@dataclass(frozen=True)
class Source:
    """Where the parts of an input are: in which of the inputs, as patches of an image with such a side, as
    tokens of which the module at ``embed`` makes vectors, or as these vectors themselves.
    """

    inputs: tuple[int, ...] = (0,)
    embed: str | None = None
    patch: int | None = None


class Wrapped(Model):
    """``called`` is the name of the module's class. ``sequence``: whether it gives logits for several
    tokens. ``streams`` are the layers around attentions whose output is observed.
    """

    def __init__(
        self,
        inner: nn.Module,
        sites: list[Site],
        *,
        called: str,
        call: Call,
        reads: Reads,
        source: Source,
        sequence: bool,
        streams: list[str],
    ) -> None:
        super().__init__()
        self.inner = inner
        self._called = called
        self._sites = sites
        self._call = call
        self._reads = reads
        self._source = source
        self._sequence = sequence
        self._streams = streams
        self._turned = False
        self._brief: tuple[str, slice] | None = None

    def forward(self, *inputs: Any) -> Tensor:
        with observed.Interception():
            given = self._call(self.inner, self._call.turned(inputs) if self._turned else inputs)
        logits = self._call.logits(given)
        return logits.transpose(0, 1) if self._turned and logits.dim() > 2 else logits

    def batch_first(self: W) -> W:
        """The same model, whose inputs and outputs have examples along the first axis: what analyses take.

        It shares all its parts with this one.
        """
        other = copy.copy(self)
        other._turned = not self._call.batch_first
        return other

    @contextmanager
    def brief(self) -> Iterator[None]:
        if self._brief is None:
            yield
            return
        path, reads = self._brief
        taps: observed.LayerTap = getattr(self.inner.get_submodule(path), observed.CHILD)
        taps.reads = reads
        try:
            yield
        finally:
            taps.reads = None

    @torch.no_grad()
    def find_brief(self, inputs: Sequence[Any], wanted: Tensor, tolerance: float) -> None:
        """Let ``brief`` leave out what is not read of the last layer, if ``reads`` names one token and it
        is true: NaN at all others leaves the logits as they are, and so does leaving them out.
        """
        tokens = {"cls": slice(0, 1), "last": slice(-1, None)}
        path = self._streams[-1] if self._streams else ""
        taps: Any = getattr(self.inner.get_submodule(path), observed.CHILD, None)
        last = self._sites[-1].path.startswith(f"{path}.") and isinstance(taps, observed.LayerTap)
        if self._reads not in tokens or not last or taps.turned:
            return
        reads = tokens[self._reads]

        def only(value: Tensor) -> Tensor:
            hidden = torch.full_like(value, torch.nan)
            hidden[:, reads] = value[:, reads]
            return hidden

        with edit(self, {f"{path}.out": only}):
            read = self(*inputs)
        self._brief = (path, reads)
        try:
            with self.brief():
                same = torch.cat((read - wanted, self(*inputs) - wanted)).abs().max()
        except (IndexError, RuntimeError, ValueError):  # the module needs all of them, if not for logits
            same = torch.tensor(torch.inf)
        if not same <= tolerance * max(1.0, wanted.abs().max().item()):
            self._brief = None

    def as_module(self: W) -> W:
        """The same model, called as the module is."""
        other = copy.copy(self)
        other._turned = False
        return other

    def cut(self: W, removed: Collection[str], constants: Mapping[str, Float[Tensor, "H K"]]) -> W:
        """A copy without the heads ``removed``, whose z are ``constants`` by the attention's path."""
        other, sites = copy.deepcopy(self), list[Site]()
        for site in self._sites:
            gone = [index for index, head in enumerate(site.head_names) if head in removed]
            if gone:
                cut_attention(other.inner, site.path, gone, constants[site.path])
            if len(gone) < site.heads:
                sites.append(replace(site, heads=site.heads - len(gone)))
        leave_fast_paths(other.inner)
        other._sites = sites
        if not sites or sites[-1].path != self._sites[-1].path:
            other._brief = None
        return other

    def named_modules(
        self, memo: set[nn.Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Module]]:
        """The parts of the module by their own names; taps stand beside them."""
        for name, module in self.inner.named_modules(memo, prefix, remove_duplicate):
            yield ".".join(word for word in name.split(".") if word != observed.CHILD), module

    def get_submodule(self, target: str) -> nn.Module:
        return self.inner.get_submodule(target)

    def sites(self) -> list[Site]:
        return self._sites

    def unseen(self) -> str:
        """None: all were found."""
        return ""

    def streams(self) -> list[str]:
        return [f"{path}.out" for path in self._streams]

    @property
    def called(self) -> str:
        return self._called

    def require_own_keys(self) -> None:
        """Refuse attentions that look at more than tokens."""
        for path, part in self.inner.named_modules():
            if isinstance(part, nn.MultiheadAttention) and (part.bias_k is not None or part.add_zero_attn):
                raise LabError(
                    f"the attention {path} adds keys that are no part of the input (add_bias_kv or "
                    "add_zero_attn), so what it looks at cannot be explained"
                )

    @property
    def input_path(self) -> str | None:
        return self._source.embed

    @property
    def input_axis(self) -> int:
        return int(self._turned)

    @property
    def source(self) -> tuple[int, ...]:
        return self._source.inputs

    def input_of(self, side: Side) -> int | None:
        if side == "input":
            return self._source.inputs[0]
        names = enumerate(self._call.arguments)
        return next((n for n, name in names if name in ("decoder_input_ids", "tgt")), None)

    @property
    def patch_size(self) -> int | None:
        return self._source.patch

    @property
    def read_path(self) -> str:
        return f"{self._sites[-1].path}.out" if self._sites else ""

    def fed(self, inputs: tuple[Tensor, ...], length: int) -> tuple[Tensor, ...]:
        """All of them: what a module takes need not be the answer so far."""
        return inputs

    def input_mask(self, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        return self._mask("input", inputs)

    def unpadded(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mask = self.input_mask(*inputs)
        if mask is None or bool(mask.all()):
            return inputs
        fed = [name.startswith(("decoder", "tgt")) for name in self._call.arguments]
        return tuple(
            each if own or each.shape[:2] != mask.shape else each[:, mask[0]]
            for own, each in zip(fed, inputs, strict=True)
        )

    def mask_at(self, path: str, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        return self._mask(self.side(path), inputs)

    def _mask(self, side: Side, inputs: Sequence[Tensor]) -> Tensor | None:
        for name in _PADDING[side]:
            if name in self._call.arguments:
                mask = inputs[self._call.arguments.index(name)]
                return mask == 0 if name.endswith("padding_mask") else mask.bool()
        return None

    def side(self, path: str) -> Side:
        stacks = {site.stack: site.queries for site in self._sites}
        inside = (side for stack, side in stacks.items() if not stack or path.startswith(f"{stack}."))
        return next(inside, "input")

    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        even = super().read_weights(*inputs, place=place)
        count, tokens = even.shape
        mask = self.mask_at(self.read_path, *inputs)
        if self._sequence:
            read = torch.full((count,), place, device=even.device)
        elif self._reads == "mean":
            return even if mask is None else mask / mask.sum(dim=1, keepdim=True)
        elif self._reads == "cls":
            read = torch.zeros(count, dtype=torch.long, device=even.device)
        else:
            real = torch.ones_like(even) if mask is None else mask
            read = (real * torch.arange(tokens, device=even.device)).argmax(dim=1)
        return F.one_hot(read, tokens).to(even)
