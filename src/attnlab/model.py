"""What analyses ask of a model, attnlab's own or any other.

A model of one's own derives from ``Model`` and needs ``forward`` alone: its attentions are found by the
``Heads`` it holds, at paths such as ``encoder.1.self``.

A **site** is one attention of a model: its path, the stack and layer it stands in, whether it looks at its
own stack or across, and its heads. Queries and keys stand for parts of the input or of the answer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.blocks import Residual
from attnlab.errors import LabError
from attnlab.notation import Head, Kind, parse_head
from attnlab.positions import Positions
from attnlab.taps import Heads, record, taps

Side = Literal["input", "answer"]
Step = Callable[[Tensor], Tensor]
HIDDEN = ".hidden"
"""How the tap at the hidden values of a feed-forward part ends."""


def greedy(step: Step, token: Int[Tensor, "B 1"], length: int) -> Int[Tensor, "B T"]:
    """The likeliest next token, ``length`` times, from the start ``token`` on."""
    said = list[Tensor]()
    for _ in range(length):
        token = step(token).argmax(dim=-1)
        said.append(token)
    return torch.cat(said, dim=1)


def greedy_surely(
    step: Step, token: Int[Tensor, "B 1"], length: int, temperature: float = 1.0
) -> tuple[Int[Tensor, "B T"], Float[Tensor, "B"]]:
    """The same, and the product of the tokens' probabilities."""
    said, sure = list[Tensor](), list[Tensor]()
    for _ in range(length):
        logits = step(token)
        token = logits.argmax(dim=-1)
        said.append(token)
        sure.append((logits / temperature).log_softmax(dim=-1).gather(-1, token[..., None])[..., 0])
    return torch.cat(said, dim=1), torch.cat(sure, dim=1).sum(dim=1).exp()


@dataclass(frozen=True)
class Site:
    """One attention. A head of it is called ``path.index``."""

    path: str
    stack: str
    layer: int
    kind: Kind
    heads: int
    queries: Side
    """What its queries stand for."""
    keys: Side
    """What its keys stand for."""

    @property
    def head_names(self) -> list[str]:
        """The names of its heads."""
        return [f"{self.path}.{index}" for index in range(self.heads)]


@dataclass(frozen=True)
class Layer:
    """What stands in one layer: the paths of its attentions and feed-forward parts, in their order."""

    path: str
    parts: list[str]


class Model(nn.Module):
    """``model(*inputs)`` gives logits (B, V) of a class, or (B, T, V) of the tokens of an answer.

    Its probabilities are softmax(logits / temperature), see ``training.temperature``.
    """

    temperature: float = 1.0

    @property
    def called(self) -> str:
        """Its name in sentences."""
        return type(self).__name__

    @property
    def input_path(self) -> str | None:
        """The module that gives a vector for each part of the input; None where there is no such module."""
        return None

    @property
    def input_axis(self) -> int:
        """The axis of what the module at ``input_path`` gives along which examples lie."""
        return 0

    @property
    def source(self) -> tuple[int, ...]:
        """The numbers of the inputs that hold the parts of an example; those of several belong together."""
        return (0,)

    def input_of(self, side: Side) -> int | None:
        """The number of the input that holds the tokens of a side; None where that is not known."""
        return self.source[0] if side == "input" else None

    @property
    def read_path(self) -> str:
        """The module or tap whose value the readout sees, or nearly so; empty if it is not known."""
        return ""

    @property
    def patch_size(self) -> int | None:
        """Pixels along each side of the patches that are its tokens; None where tokens are no patches."""
        return None

    def sites(self) -> list[Site]:
        """Its attentions, in the order of computation; none where there is no attention."""
        return find_sites(self)

    def unseen(self) -> str:
        """The path of an attention of others that it holds, by the class's name; empty where there is none.
        Such an attention has no taps.
        """
        kinds = ((path, type(part).__name__.lower()) for path, part in self.named_modules())
        return next((path for path, kind in kinds if "attention" in kind), "")

    @contextmanager
    def brief(self) -> Iterator[None]:
        """A context in which it may leave out what no logit depends on; taps behind the last attention then
        see less.
        """
        yield

    def streams(self) -> list[str]:
        """The taps at which the residual stream passes, in the order of computation."""
        return [f"{name}.out" for name, part in self.named_modules() if isinstance(part, Residual)]

    def feeds(self) -> list[str]:
        """The feed-forward parts whose hidden values have a tap, in the order of computation."""
        return [path.removesuffix(HIDDEN) for path in taps(self) if path.endswith(HIDDEN)]

    def layers(self) -> list[Layer]:
        """Its attentions and feed-forward parts by their layer, in the order of computation."""
        parts = {site.path for site in self.sites()} | set(self.feeds())
        found: dict[str, list[str]] = {}
        for path, _ in self.named_modules():
            if path in parts:
                parts.discard(path)  # a part that is observed comes twice: itself, and its taps
                found.setdefault(self._layer_of(path), []).append(path)
        return [Layer(path, inside) for path, inside in found.items()]

    def _layer_of(self, path: str) -> str:
        """The layer around a part: one whose output is observed, or what the part's path begins with."""
        around = (stream.rpartition(".")[0] for stream in self.streams())
        return next(
            (each for each in around if path.startswith(f"{each}.")), path.rpartition(".")[0] or path
        )

    def early_streams(self) -> list[str]:
        """The streams that ``early`` reads, in the order of computation: those after each layer from which
        the readout reads.
        """
        return []

    def early(self, stream: Tensor, *inputs: Tensor) -> Tensor:
        """The logits if the residual ``stream`` (B, T, D) of ``inputs`` were that behind the last layer:
        closing norm, pool and readout applied early (nostalgebraist, "interpreting GPT: the logit lens",
        2020).
        """
        raise LabError(f"the model {self.called} has no readout that can be applied early")

    def answer(self, source: Tensor, *, start: int | None = None, length: int = 1) -> Int[Tensor, "B T"]:
        """The likeliest class, as a row of one, or ``length`` tokens by greedy decoding from ``start``."""
        if start is None:
            return self(source).argmax(dim=-1)[:, None]
        return greedy(
            self.begin(source), source.new_full((len(source), 1), start, dtype=torch.long), length
        )

    def answer_surely(
        self, source: Tensor, *, start: int | None = None, length: int = 1
    ) -> tuple[Int[Tensor, "B T"], Float[Tensor, "B"]]:
        """``answer``, and the probability of each whole answer: p(class), or the product over its tokens of
        p(token | input, tokens before it).
        """
        if start is None:
            logits = self(source)
            said = logits.argmax(dim=-1)[:, None]
            return said, (logits / self.temperature).softmax(dim=-1).gather(-1, said)[:, 0]
        tokens = self.answer(source, start=start, length=length)
        fed = torch.cat((torch.full_like(tokens[:, :1], start), tokens[:, :-1]), dim=1)
        logits = self(source, fed) / self.temperature
        steps = logits.log_softmax(dim=-1).gather(-1, tokens[..., None])
        return tokens, steps.sum(dim=(1, 2)).exp()

    def begin(self, source: Tensor) -> Step:
        """Answer token by token: a function from the last token (B, 1), the start token first, to the
        logits (B, 1, V) of the next.
        """
        fed: list[Tensor] = []

        def step(token: Tensor) -> Tensor:
            fed.append(token)
            logits: Tensor = self(source, torch.cat(fed, dim=1))
            return logits[:, -1:]

        return step

    def side(self, path: str) -> Side:
        """Whether the tokens at a tap or module stand for the input or for the answer."""
        return "input"

    def input_mask(self, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        """Which tokens of the input are no padding; None where all are."""
        return None

    def unpadded(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """One example without the padding that ``input_mask`` marks."""
        return inputs

    def mask_at(self, path: str, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        """Which tokens at ``path`` are no padding; None where all are."""
        return self.input_mask(*inputs) if self.side(path) == "input" else None

    @property
    def decodes(self) -> bool:
        """Whether it says an answer token by token, and so reads from tokens of the answer."""
        return self.side(self.read_path) == "answer"

    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        """How much each token behind the last attention is read for the target number ``place``: by default
        all alike.
        """
        name = f"{self.sites()[-1].path}.pattern"
        with torch.no_grad(), record(self, name) as seen:
            self(*inputs)
        count, _, tokens, _ = seen[name].shape
        return seen[name].new_full((count, tokens), 1 / tokens)

    def fed(self, inputs: tuple[Tensor, ...], length: int) -> tuple[Tensor, ...]:
        """What is needed of ``inputs`` for the first ``length`` tokens of an answer."""
        first, *answer = inputs
        return first, *(part[:, :length] for part in answer)

    def stack_positions(self) -> dict[str, Positions]:
        """The positions of each of its stacks; empty where there are no positions."""
        return {}

    def joined_keys(self) -> nn.Module | None:
        """From the input's parts to the keys of cross attention; None where each key is a part."""
        return None


def closing_streams(blocks: nn.ModuleList, path: str) -> list[str]:
    """The stream after each of ``blocks``, which stand at ``path``."""
    found = []
    for number, block in enumerate(blocks):
        names = [name for name, part in block.named_modules() if isinstance(part, Residual)]
        found += [f"{path}.{number}.{name}.out" for name in names[-1:]]
    return found


def attentions(model: nn.Module) -> dict[str, Heads]:
    """Every attention of ``model`` by its path, in the order of computation."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Heads)}


def find_sites(model: nn.Module) -> list[Site]:
    """Every attention of ``model``, with what its path says."""
    return [_site(path, each.heads) for path, each in attentions(model).items()]


def _site(path: str, heads: int) -> Site:
    """By a path that begins with the stack and ends with the kind; one of another form looks at itself."""
    stack, *middle = path.split(".")
    layer = next((int(word) for word in middle if word.isdigit()), 0)
    kind: Kind = "cross" if middle[-1:] == ["cross"] else "self"
    queries: Side = "answer" if stack == "decoder" else "input"
    return Site(path, stack, layer, kind, heads, queries, queries if kind == "self" else "input")


def heads(model: nn.Module) -> list[Head]:
    """Every head of ``model``, in the order of computation."""
    return [parse_head(name) for site in find_sites(model) for name in site.head_names]
