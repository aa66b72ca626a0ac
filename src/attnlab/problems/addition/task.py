"""Adding two numbers of up to twelve digits, digit by digit.

Source: the digits of a, the token ``+``, the digits of b, each operand filled with leading zeros to
``digits`` places. Target: the ``digits + 1`` digits of the sum, then the end token. The decoder is fed
the start token and the target shifted by one, so every digit of the answer is predicted, the first
included. Padding, start and end have tokens of their own; 0 is the digit 0 and nothing else.

Columns count from the right: column 0 is the ones. ``carries[:, c]`` says whether column c sends a
carry to column c + 1; the carry chain of a sum is its longest run of such columns.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Literal, final

from attnlab.errors import ECHOED, InputError, LabError, brief, shortened
from attnlab.lazy import Later
from attnlab.problems.problem import Problem
from attnlab.specs.models import ModelSpec
from attnlab.specs.rules import require
from attnlab.specs.task import KeySets, Reader, Task

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from jaxtyping import Bool, Int
    from torch import Tensor

    from attnlab import sets
    from attnlab.problems.addition import carries, evaluate, key_sets, sections
    from attnlab.problems.addition import pairs as drawing
    from attnlab.report.page import Story
    from attnlab.results import Result
    from attnlab.runs import RunFolder
else:
    torch, F, sets = Later("torch"), Later("torch.nn.functional"), Later("attnlab.sets")
    carries, evaluate, key_sets, sections, drawing = Later.parts(
        "attnlab.problems.addition", "carries", "evaluate", "key_sets", "sections", "pairs"
    )

Digit = Literal["same", "any"]
"""Whether the deciding column of a pair of sums leaves the same digit in both, or any."""
WRONG = "analysis/verify-wrong.csv"
"""Where a run keeps every pair that it adds wrongly."""

PLUS, PAD, START, END = 10, 11, 12, 13
VOCABULARY = 14
SYMBOLS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "+", "·", "⊢", "⊣")

MOST_DIGITS = 3
"""Of operands of which every pair can be decoded."""

_SUM = re.compile(r"\s*([0-9]+)\s*\+\s*([0-9]+)\s*")


@final
@dataclass(frozen=True, kw_only=True)
class Addition(Problem, Task):
    """Adding two numbers, digit by digit."""

    kind: ClassVar[str] = "addition"
    noun: ClassVar[str] = "sum"
    paired_by: ClassVar[tuple[str, ...]] = ("digits", "operands")
    vocabulary: ClassVar[int] = VOCABULARY
    start: ClassVar[int] = START
    end: ClassVar[int] = END

    digits: int = 3
    """Digits of an operand, 1 to 12."""
    operands: Literal["full", "reference"] = "full"
    """``full``: 0 to 10^digits - 1; ``reference``: no leading zero (100 to 999 for three digits)."""
    order: Literal["most", "least"] = "most"
    """Which digit of operands and answer comes first: the most or the least significant one."""
    sampling: Literal["uniform", "balanced"] = "uniform"
    """``balanced`` gives short operands and long carry chains their share of training pairs."""
    train: int = 10_000
    """Training pairs. Splits are disjoint as unordered pairs; of few digits they share all there are."""
    valid: int = 2_000
    """Validation pairs, drawn as the training pairs are."""
    test: int = 2_000
    """Test pairs, always drawn uniformly."""

    def __post_init__(self) -> None:
        require(1 <= self.digits <= 12, "task.digits", self.digits, "from 1 to 12")
        super().__post_init__()

    @property
    def operand_range(self) -> tuple[int, int]:
        """Smallest and largest operand."""
        return (0 if self.operands == "full" else 10 ** (self.digits - 1)), 10**self.digits - 1

    @cached_property
    def input_length(self) -> int:
        """Both operands and the ``+``."""
        return 2 * self.digits + 1

    @property
    def _unordered(self) -> int:
        """How many pairs there are."""
        low, high = self.operand_range
        return (high - low + 1) * (high - low + 2) // 2

    @property
    def stored_numbers(self) -> int:
        """Tokens of its sums, of which there are no more than pairs."""
        count = min(self.train + self.valid + self.test, self._unordered)
        return count * (self.input_length + 2 * self.target_length)

    @property
    def target_length(self) -> int:
        """The digits of a sum, and the end."""
        return self.digits + 2

    def splits(self, seed: int) -> "sets.Splits":
        """Training, validation and test examples, disjoint as unordered pairs."""
        train, valid, test = (self.examples(pairs) for pairs in self.split_pairs(seed))
        return sets.Splits(train, valid, test)

    def split_pairs(self, seed: int) -> "tuple[Int[Tensor, 'N 2'], Int[Tensor, 'M 2'], Int[Tensor, 'L 2']]":
        """Operand pairs of the three splits. The test pairs are always a uniform sample."""
        train, valid, test = sets.fitted(self.train, self.valid, self.test, self._unordered)
        generator = torch.Generator().manual_seed(seed)
        tested = drawing.distinct_pairs(self, test, generator, sampling="uniform")
        rest = drawing.distinct_pairs(self, train + valid, generator, sampling=self.sampling, taken=tested)
        return rest[:train], rest[train:], tested

    def examples(self, pairs: "Int[Tensor, 'N 2']") -> "sets.Examples":
        """Tokens of the given operand pairs, with teacher-forced decoder input."""
        target = self.target(pairs)
        return sets.Examples((self.source(pairs), sets.shifted(target, START)), target)

    def source(self, pairs: "Int[Tensor, 'N 2']") -> "Int[Tensor, 'N S']":
        """Tokens of both operands."""
        a, b = (self._digits(pairs[:, side], self.digits) for side in (0, 1))
        return torch.cat((a, torch.full_like(a[:, :1], PLUS), b), dim=1)

    def target(self, pairs: "Int[Tensor, 'N 2']") -> "Int[Tensor, 'N T']":
        """Tokens of the sum and the end token."""
        total = self._digits(pairs.sum(dim=1), self.digits + 1)
        return torch.cat((total, torch.full_like(total[:, :1], END)), dim=1)

    def carries(self, pairs: "Int[Tensor, 'N 2']") -> "Bool[Tensor, 'N C']":
        """Whether each column, the ones first, sends a carry to the next."""
        power = 10 ** torch.arange(1, self.digits + 1)
        return (pairs[:, :1] % power + pairs[:, 1:] % power) >= power

    def chains(self, pairs: "Int[Tensor, 'N 2']") -> "Int[Tensor, 'N']":
        """Length of the longest run of columns that each send a carry."""
        longest = torch.zeros(len(pairs), dtype=torch.long)
        run = torch.zeros_like(longest)
        for carry in self.carries(pairs).unbind(dim=1):
            run = (run + 1) * carry
            longest = torch.maximum(longest, run)
        return longest

    def arrivals(self, pairs: "Int[Tensor, 'N 2']") -> "Bool[Tensor, 'N E']":
        """Whether a carry arrives at each column of the sum, the ones first."""
        return F.pad(self.carries(pairs), (1, 0))

    def deciding(self, pairs: "Int[Tensor, 'N 2']") -> "Bool[Tensor, 'N E C']":
        """Whether the digits of column j decide if a carry arrives at column c: entry [n, c, j].

        Going down from column c - 1, a column that sums to nine passes on whatever arrives there, so
        the next one is asked too; the first that does not sum to nine settles it and is the last asked.
        """
        power = 10 ** torch.arange(self.digits)
        nine = (pairs[..., None] // power % 10).sum(dim=1) == 9  # (N, C)
        asked = torch.zeros(len(pairs), self.digits + 1, self.digits, dtype=torch.bool)
        for column in range(1, self.digits + 1):
            asked[:, column, column - 1] = True
            for below in range(column - 2, -1, -1):
                asked[:, column, below] = asked[:, column, below + 1] & nine[:, below + 1]
        return asked

    def source_columns(self) -> "Int[Tensor, 'S']":
        """The column of each token of the source; -1 for the plus."""
        columns = self._in_order(self.digits)
        return torch.cat((columns, torch.tensor([-1]), columns))

    def target_columns(self) -> "Int[Tensor, 'T']":
        """The column of each token of the target; -1 for the end."""
        return torch.cat((self._in_order(self.digits + 1), torch.tensor([-1])))

    def suggestions(self) -> list[str]:
        """A carry through all columns, and the largest sum, as one writes them."""
        low, high = self.operand_range
        return [f"{high}+{low}", f"{high}+{high}"]

    def note(self) -> str:
        return "The ones are said first." if self.order == "least" else ""

    def input_words(self) -> str:
        first = "the ones" if self.order == "least" else "the most significant digit"
        return f"the tokens of a sum of {self.digits} digits, each operand {first} first, + between them"

    def places(self) -> list[str]:
        """Names of the target's places, in the order in which they are emitted."""
        return [*(f"10^{column}" for column in self._in_order(self.digits + 1).tolist()), "end"]

    def results(self) -> "tuple[type[Result], ...]":
        """Evaluation by carry chain and by column, and patching of carries."""
        return evaluate.AdditionEvaluation, carries.CarryResult

    def analyses(self) -> "Mapping[str, Callable[..., Result]]":
        """``verify`` decodes every sum; what a head does includes the carries that it brings."""
        from attnlab.analysis.matching import behaviour_run

        return {
            "verify": partial(evaluate.verify_run, self),
            "behaviour": partial(behaviour_run, carried=partial(carries.carried, self)),
        }

    def sections(self, run: "RunFolder", story: "Story") -> "Story":
        """By carry chain, and with what ``verify`` found."""
        return sections.addition_story(self, run, story)

    def unseen(
        self, examples: "sets.Examples", task: "Addition", seed: int
    ) -> "tuple[sets.Examples, Bool[Tensor, 'N']]":
        """The same sums in the order of this task; a sum and its mirror image are one."""
        train, valid, _ = self.split_pairs(seed)
        pairs = task.pairs(examples.inputs[0])
        return self.examples(pairs), ~self.among(pairs, torch.cat((train, valid)))

    def among(self, pairs: "Int[Tensor, 'N 2']", known: "Int[Tensor, 'M 2']") -> "Bool[Tensor, 'N']":
        """Which pairs are known, in either order."""
        codes = [each.amin(dim=1) * 10**self.digits + each.amax(dim=1) for each in (pairs, known)]
        return torch.isin(codes[0], codes[1])

    def labels(self) -> list[str]:
        """The digits."""
        return list(SYMBOLS[:10])

    def key_sets(self, examples: "sets.Examples", model: ModelSpec) -> KeySets:
        """What ``problems/addition/key_sets.py`` names."""
        return key_sets.addition_sets(self, self.pairs(examples.inputs[0]))

    def contrasts(
        self, count: int, seed: int, *, column: int | None = None, reach: int = 1, digit: Digit = "same"
    ) -> "list[sets.Pairs]":
        """Sums with and without a carry into a column, by default into each (``pairs.carry_pairs``)."""
        columns = range(max(1, reach), max(self.digits, reach) + 1) if column is None else [column]
        draw = partial(drawing.carry_pairs, self, count=count, reach=reach, digit=digit)
        return [draw(column=each, generator=torch.Generator().manual_seed(seed)) for each in columns]

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Sums by their longest carry chain."""
        chains = self.chains(self.pairs(examples.inputs[0]))
        return {f"carry chain {chain}": chains == chain for chain in sorted(set(chains.tolist()))}

    def pairs(self, source: "Int[Tensor, 'N S']") -> "Int[Tensor, 'N 2']":
        """The operands that tokens of a source spell."""
        power = 10 ** self._in_order(self.digits)
        return torch.stack(
            [(part * power).sum(dim=1) for part in (source[:, : self.digits], source[:, -self.digits :])],
            dim=1,
        )

    def parse(self, text: str) -> "sets.Examples":
        """One sum, written as ``374+814``."""
        return self.examples(self.read_pair(text)[None])

    def parse_all(self, texts: Sequence[str]) -> "list[sets.Group]":
        """All of them have one length."""
        pairs = torch.tensor([self.read_operands(text) for text in texts])
        return [(list(range(len(texts))), self.examples(pairs))]

    def reader(self) -> Reader:
        """``parse``, ``show`` and ``answer`` as ``reader.js`` has them."""
        low, high = self.operand_range
        facts = {"digits": self.digits, "order": self.order, "low": low, "high": high}
        return Reader.beside(__file__, {**facts, "symbols": list(SYMBOLS)})

    def show(self, example: "sets.Examples") -> "sets.Shown":
        """A sum as one writes it."""
        (shown,) = self.show_all(example)
        return shown

    def show_all(self, examples: "sets.Examples") -> "list[sets.Shown]":
        """Sums as one writes them."""
        source = examples.inputs[0]
        rows = zip(self.pairs(source).tolist(), source.tolist(), examples.targets.tolist(), strict=True)
        return [
            sets.Shown(f"{a}+{b}", [SYMBOLS[token] for token in tokens], self._spelt(target))
            for (a, b), tokens, target in rows
        ]

    def read_pair(self, text: str) -> "Int[Tensor, '2']":
        """Read ``374+814``."""
        return torch.tensor(self.read_operands(text))

    def read_operands(self, text: str) -> tuple[int, int]:
        """The same as plain numbers."""
        if not text.strip():
            raise InputError("the line is empty; write a sum such as 374+814")
        match = _SUM.fullmatch(text)
        if match is None:
            raise InputError(f"{brief(text.strip())} is no sum of two numbers; write it as 374+814")
        numbers = [each.lstrip("0") or "0" for each in match.groups()]
        low, high = self.operand_range
        for number in numbers:
            if len(number) > self.digits or not low <= int(number) <= high:
                raise InputError(
                    f"{shortened(number, ECHOED)} is outside {low} to {high}, "
                    "the operands that this model has learned"
                )
        a, b = map(int, numbers)
        return a, b

    def answer(self, tokens: "Int[Tensor, 'T']") -> str:
        """The number that emitted tokens spell, or their symbols if they spell none."""
        return self._spelt(tokens.tolist())

    def _spelt(self, tokens: list[int]) -> str:
        *digits, end = tokens
        if end != END or max(digits) > 9:
            return "".join(SYMBOLS[token] for token in tokens)
        if self.order == "least":
            digits = digits[::-1]
        return str(int("".join(map(str, digits))))

    def symbols(self, tokens: "Int[Tensor, 'T']") -> list[str]:
        """A printable sign for each token."""
        return [SYMBOLS[token] for token in tokens.tolist()]

    def _digits(self, numbers: "Int[Tensor, 'N']", count: int) -> "Int[Tensor, 'N C']":
        return numbers[:, None] // 10 ** self._in_order(count) % 10

    def _in_order(self, count: int) -> "Int[Tensor, 'C']":
        """Columns as they are written."""
        columns = torch.arange(count)
        return columns if self.order == "least" else columns.flip(0)


def verifiable(task: Task) -> Addition:
    """Refuse a task that has nothing to verify, or more pairs than anybody can wait for."""
    if not isinstance(task, Addition):
        raise LabError(f"verify decodes sums, but the task is {brief(task.kind)}; use evaluate instead")
    if task.digits > MOST_DIGITS:
        raise LabError(
            f"verify decodes every pair, and operands of {task.digits} digits have 10^{2 * task.digits}; "
            f"the limit is {MOST_DIGITS} digits, so use evaluate instead"
        )
    return task
