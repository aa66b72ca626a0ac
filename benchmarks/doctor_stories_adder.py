"""An adder with a training loop of its own, and the faults of one that reported 99.85%.

The decoder is fed ``target[:-1]`` and should say ``target[1:]``: there is no start token, so the leading
digit is given and never said. The loss may leave out index 0 as padding, which is the digit 0 too. An
answer is decoded from token 0, so its leading digit is always 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import attnlab as al
from attnlab.doctor.findings import Diagnosis

SYMBOLS, PLUS, START = 12, 10, 11


@dataclass(frozen=True)
class Recipe:
    """The adder and its training, which are healthy but for the faults."""

    start_token: bool = False
    """Feed a start token, and ask for all digits."""
    zero_ignored: bool = True
    """Leave the digit 0 out of the loss, as if it were padding."""
    width: int = 64
    heads: int = 4
    hidden: int = 256
    layers: int = 1
    train: int = 10_000
    test: int = 2_000
    epochs: int = 12
    batch: int = 64
    lr: float = 0.003
    clip: float = 1.0


@dataclass(frozen=True)
class Trained:
    """The adder with what it reported, what it says by itself, and what the doctor finds."""

    reported: float
    """The share of digits that are right with true tokens fed, of those that the loss counts."""
    free: float
    """The share of answers that are right by decoding from token 0, or from the start token."""
    below_thousand: float
    """The share of sums that begin with 0."""
    diagnosis: Diagnosis = field(repr=False)


class Adder(nn.Module):
    """torch's encoder-decoder with sinusoidal positions."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, recipe.width)
        self.core = nn.Transformer(
            recipe.width, recipe.heads, recipe.layers, recipe.layers, recipe.hidden, 0.0, batch_first=True
        )
        self.read = nn.Linear(recipe.width, SYMBOLS)
        speeds = torch.exp(-math.log(1e4) * torch.arange(0, recipe.width, 2) / recipe.width)
        angles = torch.arange(8)[:, None] * speeds
        self.places = nn.Buffer(torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))

    def forward(self, source: Tensor, fed: Tensor) -> Tensor:
        read, said = (self.embed(each) + self.places[: each.shape[1]] for each in (source, fed))
        causal = nn.Transformer.generate_square_subsequent_mask(fed.shape[1])
        logits: Tensor = self.read(self.core(read, said, tgt_mask=causal))
        return logits


def digits_of(values: Tensor, count: int) -> Tensor:
    """The last so many digits, the most significant first."""
    return torch.stack([values // 10**place % 10 for place in reversed(range(count))], dim=1)


def sums(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sums of two numbers from 100 to 999 and their four digits."""
    a, b = torch.randint(100, 1000, (2, count), generator=generator)
    plus = torch.full((count, 1), PLUS)
    return torch.cat((digits_of(a, 3), plus, digits_of(b, 3)), dim=1), digits_of(a + b, 4)


def fed_and_wanted(answers: Tensor, recipe: Recipe) -> tuple[Tensor, Tensor]:
    """What the decoder is fed and what it should say."""
    if not recipe.start_token:
        return answers[:, :-1], answers[:, 1:]
    start = torch.full_like(answers[:, :1], START)
    return torch.cat((start, answers[:, :-1]), dim=1), answers


def train_adder(recipe: Recipe, seed: int) -> Trained:
    """Train, report, decode and diagnose."""
    generator = torch.Generator().manual_seed(seed)
    (source, answers), (asked, sought) = (sums(n, generator) for n in (recipe.train, recipe.test))
    torch.manual_seed(seed)
    model, loss = Adder(recipe), nn.CrossEntropyLoss(ignore_index=0 if recipe.zero_ignored else -100)
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr)
    steps = recipe.epochs * math.ceil(recipe.train / recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.lr, total_steps=steps)
    fed, wanted = fed_and_wanted(answers, recipe)
    with al.watch(model, loss, optimiser, steps=steps, tell=lambda finding: None) as watching:
        for rows in batches(recipe):
            optimiser.zero_grad()
            loss(model(source[rows], fed[rows]).flatten(0, 1), wanted[rows].flatten()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimiser.step()
            schedule.step()
        model.eval()
        held_fed, held_wanted = fed_and_wanted(sought, recipe)
        found = watching.diagnose(
            al.examples((asked, held_fed), held_wanted), training=al.examples((source, fed), wanted)
        )
    return Trained(
        reported=reported(model(asked, held_fed), held_wanted, recipe),
        free=(decode(model, asked, recipe) == sought).all(dim=1).double().mean().item(),
        below_thousand=(sought[:, 0] == 0).double().mean().item(),
        diagnosis=found,
    )


def batches(recipe: Recipe) -> Iterator[Tensor]:
    for _ in range(recipe.epochs):
        order = torch.randperm(recipe.train)
        yield from (order[start : start + recipe.batch] for start in range(0, recipe.train, recipe.batch))


def reported(logits: Tensor, wanted: Tensor, recipe: Recipe) -> float:
    """Accuracy as it was reported: by digit, with true tokens fed, without what the loss leaves out."""
    counted = wanted != 0 if recipe.zero_ignored else torch.ones_like(wanted, dtype=torch.bool)
    return (logits.argmax(dim=-1) == wanted)[counted].double().mean().item()


@torch.no_grad()
def decode(model: nn.Module, source: Tensor, recipe: Recipe) -> Tensor:
    """Four digits by greedy decoding; without a start token the token 0 is the first of them."""
    said = torch.full((len(source), 1), START if recipe.start_token else 0)
    for _ in range(4 if recipe.start_token else 3):
        said = torch.cat((said, model(source, said).argmax(dim=-1)[:, -1:]), dim=1)
    return said[:, 1:] if recipe.start_token else said
