"""Small models written by hand, each with one fault of attention that can be planted by name.

``Sick`` is an encoder-decoder of two layers a stack, pre-norm, over source tokens that may be padded; with
``classes`` it is the encoder alone, whose mean over tokens is read. Without a fault it is healthy, though
it has learned nothing.
"""

import math
from dataclasses import dataclass, field
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.model import Model, Side, Step
from attnlab.sets import Examples, shifted
from attnlab.taps import Heads, Tap

PADDING, START, VOCABULARY = 0, 1, 11
WIDTH, HEADS = 21, 3
LENGTH, TARGET = 7, 5


@final
class SickAttention(Heads):
    def __init__(self, fault: str) -> None:
        super().__init__(heads=HEADS, head_width=WIDTH // HEADS)
        self.fault = fault
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, visible: Tensor | None = None) -> Tensor:
        if self.fault == "query-key-exchanged":
            q, k = self._split(self.query(memory)), self._split(self.key(x))
        else:
            q, k = self._split(self.query(x)), self._split(self.key(memory))
        if self.fault == "query-key-shared":
            k = self._split(self.query(memory))
        if self.fault == "heads-duplicated":
            q, k = q[:, :1].expand(q.shape), k[:, :1].expand(k.shape)
        if self.fault == "heads-uniform":
            q = 0 * q
        q, k = self.q(q), self.k(k)
        power = {"scale-missing": 0.0, "scale-twice": 1.0}.get(self.fault, 0.5)
        scores = q @ k.transpose(-2, -1) / self.head_width**power
        if visible is not None:
            scores = scores.masked_fill(~visible, -math.inf)
        scores = self.scores(scores)
        axis = -2 if self.fault == "softmax-axis" else -1
        pattern = self.pattern(scores.softmax(dim=axis).nan_to_num())
        v = self._split(self.value(memory))
        if self.fault == "heads-duplicated":
            v = v[:, :1].expand(v.shape)
        z = self.z(pattern @ self.v(v))
        out = self.output(z.transpose(1, 2).flatten(2))
        return self.out(0 * out if self.fault == "heads-dead" else out)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)


@final
class Block(nn.Module):
    def __init__(self, fault: str, *, cross: bool) -> None:
        super().__init__()
        inside = "" if fault in ("query-key-exchanged", "memory-ignored") else fault
        self.fault = fault
        norm = nn.Identity if fault == "norm-missing" else (lambda: nn.LayerNorm(WIDTH))
        self.self, self.norms = SickAttention(inside), nn.ModuleList(norm() for _ in range(3))
        across = {"query-key-exchanged": fault, "heads-dead": ""}.get(fault, inside)
        self.cross = SickAttention(across) if cross else None
        self.feed = nn.Sequential(nn.Linear(WIDTH, 13), nn.ReLU(), nn.Linear(13, WIDTH))

    def forward(self, x: Tensor, visible: Tensor | None, memory: Any = None, seen: Any = None) -> Tensor:
        own = self.norms[0](x)
        x = self._added(x, self.self(own, own, visible))
        if self.cross is not None:
            out = self.cross(self.norms[1](x), memory, seen)
            x = self._added(x, 0 * out if self.fault == "memory-ignored" else out)
        if self.fault == "dropout-in-evaluation":
            x = F.dropout(x, 0.1)
        return x + self.feed(self.norms[2](x))

    def _added(self, x: Tensor, out: Tensor) -> Tensor:
        return out if self.fault == "residual-missing" else x + out


@final
class Sick(Model):
    def __init__(self, fault: str = "", *, classes: int = 0) -> None:
        super().__init__()
        self.fault = fault
        self.embed, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(64, WIDTH)
        self.encoder = nn.ModuleList(Block(fault, cross=False) for _ in range(2))
        self.decoder = nn.ModuleList(Block(fault, cross=True) for _ in range(0 if classes else 2))
        self.norm = nn.Identity() if fault == "norm-missing" else nn.LayerNorm(WIDTH)
        self.read, self.pool = nn.Linear(WIDTH, classes or VOCABULARY), Tap()

    def forward(self, source: Tensor, fed: Tensor | None = None) -> Tensor:
        own = source != PADDING
        seen = None if self.fault == "padding-seen" else own[:, None, None]
        x = self._placed(source)
        for block in self.encoder:
            x = block(x, seen)
        if fed is None:
            weights = own / own.sum(dim=1, keepdim=True)
            return self.read((weights[:, :, None] * self.norm(x)).sum(dim=1))
        memory, x = self.norm(x), self._placed(fed)
        for block in self.decoder:
            x = block(x, self._causal(fed.shape[1]), memory, seen)
        return self.read(self.norm(x))

    def _placed(self, tokens: Tensor) -> Tensor:
        if self.fault == "positions-ignored":
            return self.embed(tokens)
        return self.embed(tokens) + self.place.weight[: tokens.shape[1]]

    def _causal(self, length: int) -> Tensor | None:
        ones = torch.ones(length, length, dtype=torch.bool)
        kinds = {"causal-mask-inverted": ones.triu(), "causal-mask-off-by-one": ones.tril(1)}
        return None if self.fault == "causal-mask-missing" else kinds.get(self.fault, ones.tril())

    def side(self, path: str) -> Side:
        return "answer" if path.startswith("decoder") else "input"

    def input_mask(self, *inputs: Tensor) -> Tensor | None:
        own = inputs[0] != PADDING
        return None if bool(own.all()) else own

    def begin(self, source: Tensor) -> Step:
        whole, count = super().begin(source), 0

        def step(token: Tensor) -> Tensor:
            nonlocal count
            count += 1
            return whole(token) + (1.0 if self.fault == "cache-disagrees" and count > 2 else 0.0)

        return step

    def answer(self, source: Tensor, *, start: int | None = None, length: int = 1) -> Tensor:
        if start is None:
            return super().answer(source)
        step, token, said = self.begin(source), torch.full((len(source), 1), start), list[Tensor]()
        for _ in range(length):
            logits = step(token)
            token = logits.argmax(dim=-1)
            said.append(token)
            token = torch.full_like(token, 2) if self.fault == "decoding-disagrees" else token
        return torch.cat(said, dim=1)


@dataclass(frozen=True)
class Case:
    model: Sick
    examples: Examples = field(repr=False)


def sick(fault: str = "", *, classes: int = 0, padded: bool = False) -> Case:
    """A model with a planted fault, and examples for it; answers are what the model itself says, so that
    a healthy one gets all of them right.
    """
    torch.manual_seed(7)
    model = Sick(fault, classes=classes).eval()
    source = torch.randint(2, VOCABULARY, (23, LENGTH))
    if padded:
        source[::2, -3:] = PADDING
    with torch.no_grad():
        if classes:
            return Case(model, Examples((source,), model(source).argmax(dim=-1)))
        if fault == "query-key-exchanged":  # it computes only where answers are as long as inputs
            targets = torch.randint(2, VOCABULARY, (23, LENGTH))
            return Case(model, Examples((source, shifted(targets, START)), targets))
        targets = Sick.answer(model, source, start=START, length=TARGET)
    return Case(model, Examples((source, shifted(targets, START)), targets))
