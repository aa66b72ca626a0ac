"""A model of which it is known what decides, and where its attention looks.

A list of five symbols, and the answer is the symbol at the place ``reads``. Its only head puts weight 1 on
the place ``looks``. If ``through`` is true, what is read comes through the head, so looking is all there
is; if not, the head's output is thrown away, and attention explains nothing.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.analysis.explain.perturbation import Question, Tokens
from attnlab.attention import Attention
from attnlab.model import Model, Site
from attnlab.sets import Examples

SYMBOLS, LENGTH = 7, 5
WIDTH = SYMBOLS + LENGTH
SURE = 6.0  # logit of the answer, all others being 0


class Pointer(Model):
    def __init__(self, *, looks: int, reads: int, through: bool) -> None:
        super().__init__()
        self.reads, self.through = reads, through
        self.embed = nn.Embedding(SYMBOLS, WIDTH)
        self.place = nn.Parameter(torch.eye(LENGTH, WIDTH).roll(SYMBOLS, dims=1))
        self.self = Attention(width=WIDTH, heads=1, head_width=SYMBOLS)
        with torch.no_grad():
            self.embed.weight.copy_(torch.eye(SYMBOLS, WIDTH) * SURE)
            for part in (self.self.query, self.self.key, self.self.value, self.self.output):
                assert isinstance(part, nn.Linear)
                part.weight.zero_()
                part.bias.zero_()
            self.self.query.bias[0] = 100.0
            self.self.key.weight[0, SYMBOLS + looks] = 1.0
            self.self.value.weight.copy_(torch.eye(SYMBOLS, WIDTH))
            assert isinstance(self.self.output, nn.Linear)
            self.self.output.weight.copy_(torch.eye(WIDTH, SYMBOLS))

    def sites(self) -> list[Site]:
        return [Site("self", "encoder", 0, "self", 1, "input", "input")]

    def forward(self, tokens: Int[Tensor, "B 5"]) -> Float[Tensor, "B 7"]:
        x = self.embed(tokens) + self.place
        seen = self.self(x, x)
        return (seen[:, 0] if self.through else x[:, self.reads] + 0 * seen[:, 0])[:, :SYMBOLS]


def pointer(*, looks: int, reads: int, count: int = 23) -> tuple[Pointer, Examples]:
    """The model and examples of it; what it reads comes through its head if it looks where it reads."""
    model = Pointer(looks=looks, reads=reads, through=looks == reads).eval()
    tokens = torch.randint(SYMBOLS, (count, LENGTH), generator=torch.Generator().manual_seed(5))
    return model, Examples((tokens,), tokens[:, reads])


def ask(model: Model, examples: Examples, number: int = 0) -> Question:
    """Why the model says what it says to an example."""
    tokens = examples.inputs[0][number : number + 1]
    return Question(model, (tokens,), Tokens("embed"), int(examples.targets[number]))
