"""Adding two numbers of up to 200 digits, digit by digit.

Source: the digits of a, the token ``+``, the digits of b, each operand filled with leading zeros to
the sum's length n, which is ``digits`` places. Target: the n + 1 digits of the sum, then the end token. The
decoder is fed the start token and the target shifted by one, so every digit of the answer is predicted, the
first included. Padding, start and end have tokens of their own; 0 is the digit 0 and nothing else.

With ``shortest`` lengths vary: each n from ``shortest`` to ``digits`` is as likely in training, a sum is
written with as many places as its longer operand needs, and any length up to 200 can be asked for. Shorter
sources are filled up with padding, shorter targets with the end token.

Columns count from the right: column 0 is the ones. ``carries[:, c]`` says whether column c sends a
carry to column c + 1; the carry chain of a sum is its longest run of such columns. Operands are given as
numbers (N, 2), or by digits (N, 2, C) with the ones first (``operands.py``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Literal, final

from attnlab.errors import ECHOED, InputError, LabError, brief, shortened
from attnlab.lazy import Later
from attnlab.problems.addition.words import COUNTED, LONGEST, STUDIED
from attnlab.problems.problem import Problem
from attnlab.specs.codec import later
from attnlab.specs.models import ModelSpec
from attnlab.specs.positions import Columns
from attnlab.specs.rules import require
from attnlab.specs.task import KeySets, Reader, Task, Tokens, TourStep

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from jaxtyping import Bool, Int
    from torch import Tensor

    from attnlab import sets
    from attnlab.problems.addition import carries, draws, evaluate, key_sets, lengths, sections
    from attnlab.problems.addition import operands as columns
    from attnlab.problems.addition import pairs as drawing
    from attnlab.problems.addition.operands import Operands
    from attnlab.report.page import Story
    from attnlab.results import Result
    from attnlab.runs import RunFolder
else:
    torch, F, sets = Later("torch"), Later("torch.nn.functional"), Later("attnlab.sets")
    carries, columns, draws, evaluate, key_sets, lengths, sections, drawing = Later.parts(
        "attnlab.problems.addition",
        "carries", "operands", "draws", "evaluate", "key_sets", "lengths", "sections", "pairs",
    )  # fmt: skip

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
    """Digits of an operand, 1 to 200; of the longest one where lengths vary."""
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
    shortest: int = later(0)
    """Digits of the shortest operands to learn from, where lengths vary; 0: all have ``digits``."""

    def __post_init__(self) -> None:
        require(1 <= self.digits <= LONGEST, "task.digits", self.digits, f"from 1 to {LONGEST}")
        rule = f"from 0 to task.digits, which is {self.digits}"
        require(0 <= self.shortest <= self.digits, "task.shortest", self.shortest, rule)
        rule = f"full where lengths vary or operands have more than {COUNTED} digits"
        require(not self.by_digit or self.operands == "full", "task.operands", self.operands, rule)
        super().__post_init__()

    @property
    def by_digit(self) -> bool:
        """Whether operands are drawn digit by digit, anew for every epoch."""
        return self.shortest > 0 or self.digits > COUNTED

    @property
    def lengths(self) -> tuple[int, int]:
        """Digits of the shortest and longest operands of training."""
        return self.shortest or self.digits, self.digits

    @property
    def tokens(self) -> Tokens | None:
        """Where lengths vary, padding fills up the shorter ones."""
        return Tokens(VOCABULARY, padding=PAD, front=START) if self.shortest else None

    @property
    def coupling(self) -> Columns:
        """Both operands are counted by themselves; a sum has one more digit, where it begins with the most
        significant one.
        """
        return Columns(breaks=(PLUS,), lead=1 if self.order == "most" else 0)

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
        if self.by_digit:
            return draws.splits(self, seed)
        train, valid, test = (self.examples(pairs) for pairs in self.split_pairs(seed))
        return sets.Splits(train, valid, test)

    def split_pairs(self, seed: int) -> "tuple[Int[Tensor, 'N 2'], Int[Tensor, 'M 2'], Int[Tensor, 'L 2']]":
        """Operand pairs of the three splits. The test pairs are always a uniform sample."""
        train, valid, test = sets.fitted(self.train, self.valid, self.test, self._unordered)
        generator = torch.Generator().manual_seed(seed)
        tested = drawing.distinct_pairs(self, test, generator, sampling="uniform")
        rest = drawing.distinct_pairs(self, train + valid, generator, sampling=self.sampling, taken=tested)
        return rest[:train], rest[train:], tested

    def examples(self, operands: "Operands", lengths: "Int[Tensor, 'N'] | None" = None) -> "sets.Examples":
        """Tokens of the given operands, with teacher-forced decoder input; ``lengths`` are the places of
        each sum's operands, by default all that are given.
        """
        target = self.target(operands, lengths)
        return sets.Examples((self.source(operands, lengths), sets.shifted(target, START)), target)

    def source(
        self, operands: "Operands", lengths: "Int[Tensor, 'N'] | None" = None
    ) -> "Int[Tensor, 'N S']":
        """Tokens of both operands."""
        digits = columns.by_digit(operands, self.digits)
        lengths = self.written_places(digits, lengths)
        a, b = (columns.in_order(digits[:, side], lengths, self.order) for side in (0, 1))
        place, n = torch.arange(2 * digits.shape[2] + 1), lengths[:, None]
        both = torch.cat((F.pad(a, (0, 1)), b), dim=1)  # b begins at C + 1
        index = torch.where(place < n, place, place - n + digits.shape[2]).clamp(max=both.shape[1] - 1)
        written = both.gather(1, index)
        return written.where(place < 2 * n + 1, PAD).where(place != n, PLUS)

    def target(
        self, operands: "Operands", lengths: "Int[Tensor, 'N'] | None" = None
    ) -> "Int[Tensor, 'N T']":
        """Tokens of the sum and the end token."""
        digits = columns.by_digit(operands, self.digits)
        places = self.written_places(digits, lengths) + 1
        total = F.pad(columns.in_order(columns.sum_of(digits), places, self.order), (0, 1))
        return total.where(torch.arange(total.shape[1]) < places[:, None], END)

    def written_places(
        self, digits: "Int[Tensor, 'N 2 C']", lengths: "Int[Tensor, 'N'] | None"
    ) -> "Int[Tensor, 'N']":
        """The places that operands are written with, by default all."""
        return torch.full((len(digits),), digits.shape[2]) if lengths is None else lengths

    def read_back(self, source: "Int[Tensor, 'N S']") -> "tuple[Int[Tensor, 'N 2 C'], Int[Tensor, 'N']]":
        """The operands that tokens of a source spell, by digit, and their places."""
        count = source.shape[1] // 2
        n = (source == PLUS).long().argmax(dim=1, keepdim=True)
        column = torch.arange(count)
        place = column if self.order == "least" else n - 1 - column  # (C) or (N, C)
        sides = [source.gather(1, (place + first).clamp(0, 2 * count)) for first in (0 * n, n + 1)]
        return torch.stack(sides, dim=1) * (column < n)[:, None], n[:, 0]

    def carries(self, operands: "Operands") -> "Bool[Tensor, 'N C']":
        """Whether each column, the ones first, sends a carry to the next."""
        return columns.carries_of(columns.by_digit(operands, self.digits))

    def chains(self, operands: "Operands") -> "Int[Tensor, 'N']":
        """Length of the longest run of columns that each send a carry."""
        return columns.longest_runs(self.carries(operands))

    def arrivals(self, operands: "Operands") -> "Bool[Tensor, 'N E']":
        """Whether a carry arrives at each column of the sum, the ones first."""
        return F.pad(self.carries(operands), (1, 0))

    def deciding(self, operands: "Operands") -> "Bool[Tensor, 'N E C']":
        """Whether the digits of column j decide if a carry arrives at column c (``operands.deciding``)."""
        return columns.deciding(columns.by_digit(operands, self.digits))

    def source_columns(self) -> "Int[Tensor, 'S']":
        """The column of each token of a source of ``digits`` places; -1 for the plus."""
        own = self._in_order(self.digits)
        return torch.cat((own, torch.tensor([-1]), own))

    def target_columns(self) -> "Int[Tensor, 'T']":
        """The column of each token of its target; -1 for the end."""
        return torch.cat((self._in_order(self.digits + 1), torch.tensor([-1])))

    def suggestions(self) -> list[str]:
        """A carry through all columns, and the largest sum or a longer one, as one writes them."""
        low, high = self.operand_range
        more = f"{'9' * min(3 * self.digits, LONGEST)}+1" if self.shortest else f"{high}+{high}"
        return [f"{max(low, 1)}+{high}", more]

    def tour(self) -> "tuple[TourStep, ...]":
        """That of long sums where lengths vary."""
        steps = self._beside("tour")
        return steps.LONG_TOUR if self.shortest else steps.TOUR

    def note(self) -> str:
        return "The ones are said first." if self.order == "least" else ""

    def input_words(self) -> str:
        first = "the ones" if self.order == "least" else "the most significant digit"
        digits = f"{self.shortest} to {LONGEST}" if self.shortest else str(self.digits)
        return f"the tokens of a sum of {digits} digits, each operand {first} first, + between them"

    def places(self) -> list[str]:
        """Names of the target's places, in the order in which they are emitted."""
        return self.places_of(self.target_length)

    def places_of(self, count: int) -> list[str]:
        """The same of a sum whose answer has ``count`` tokens."""
        return [*(f"10^{column}" for column in self._in_order(count - 1).tolist()), "end"]

    def results(self) -> "tuple[type[Result], ...]":
        """Evaluation by carry chain and by column, and patching of carries."""
        return evaluate.AdditionEvaluation, carries.CarryResult

    def analyses(self) -> "Mapping[str, Callable[..., Result]]":
        """``verify`` decodes every sum; ``lengths`` measures others; what a head does includes the carries
        that it brings.
        """
        from attnlab.analysis.matching import behaviour_run

        studied = {
            name: partial(lengths.lengths_run, self, lengths=wanted, examples=count, keep=name)
            for name, (wanted, count) in STUDIED.items()
        }
        return {
            **({"lengths": partial(lengths.lengths_run, self), **studied} if self.shortest else {}),
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
        splits = self.splits(seed)
        known = torch.cat([self.read_back(each.inputs[0])[0] for each in (splits.train, splits.valid)])
        operands, lengths = task.read_back(examples.inputs[0])
        return self.examples(operands, lengths), ~self.among(operands, known)

    def among(self, operands: "Operands", known: "Operands") -> "Bool[Tensor, 'N']":
        """Which pairs are known, in either order."""
        each = [columns.codes(columns.by_digit(pairs, self.digits)) for pairs in (operands, known)]
        return torch.isin(each[0], each[1])

    def labels(self) -> list[str]:
        """The digits."""
        return list(SYMBOLS[:10])

    def key_sets(self, examples: "sets.Examples", model: ModelSpec) -> KeySets:
        """What ``problems/addition/key_sets.py`` names."""
        return key_sets.addition_sets(self, *self.read_back(examples.inputs[0]))

    def contrasts(
        self, count: int, seed: int, *, column: int | None = None, reach: int = 1, digit: Digit = "same"
    ) -> "list[sets.Pairs]":
        """Sums with and without a carry into a column, by default into each (``pairs.carry_pairs``)."""
        columns = range(max(1, reach), max(self.digits, reach) + 1) if column is None else [column]
        draw = partial(drawing.carry_pairs, self, count=count, reach=reach, digit=digit)
        return [draw(column=each, generator=torch.Generator().manual_seed(seed)) for each in columns]

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Sums by their longest carry chain."""
        chains = self.chains(self.read_back(examples.inputs[0])[0])
        return {f"carry chain {chain}": chains == chain for chain in sorted(set(chains.tolist()))}

    def parse(self, text: str) -> "sets.Examples":
        """One sum, written as ``374+814``."""
        return self.examples(self._typed(self.read_operands(text)))

    def parse_all(self, texts: Sequence[str]) -> "list[sets.Group]":
        """Those of one length together."""
        pairs = [self.read_operands(text) for text in texts]
        if self.shortest:
            return sets.grouped([self.examples(self._typed(pair)) for pair in pairs])
        return [(list(range(len(texts))), self.examples(torch.cat([self._typed(pair) for pair in pairs])))]

    def _typed(self, pair: tuple[int, int]) -> "Int[Tensor, '1 2 C']":
        """The digits of two numbers, as many as the longer one has where lengths vary."""
        count = max(len(str(number)) for number in pair) if self.shortest else self.digits
        rows = [[int(digit) for digit in reversed(str(number).zfill(count))] for number in pair]
        return torch.tensor([rows])

    def reader(self) -> Reader:
        """``parse``, ``show`` and ``answer`` as ``reader.js`` has them."""
        low, high = self.operand_range
        varies = {"longest": LONGEST} if self.shortest else {}
        facts = {"digits": self.digits, "order": self.order, "low": str(low), "high": str(high), **varies}
        return Reader.beside(__file__, {**facts, "symbols": list(SYMBOLS)})

    def show(self, example: "sets.Examples") -> "sets.Shown":
        """A sum as one writes it."""
        (shown,) = self.show_all(example)
        return shown

    def show_all(self, examples: "sets.Examples") -> "list[sets.Shown]":
        """Sums as one writes them."""
        source = examples.inputs[0]
        operands, _ = self.read_back(source)
        rows = zip(operands.tolist(), source.tolist(), examples.targets.tolist(), strict=True)
        return [
            sets.Shown(
                f"{columns.spelt(a)}+{columns.spelt(b)}",
                [SYMBOLS[token] for token in tokens],
                self._spelt(target),
            )
            for (a, b), tokens, target in rows
        ]

    def read_operands(self, text: str) -> tuple[int, int]:
        """The operands of ``374+814``."""
        if not text.strip():
            raise InputError("the line is empty; write a sum such as 374+814")
        match = _SUM.fullmatch(text)
        if match is None:
            raise InputError(f"{brief(text.strip())} is not a sum of two numbers; write it as 374+814")
        numbers = [each.lstrip("0") or "0" for each in match.groups()]
        if self.shortest:
            for number in numbers:
                if len(number) > LONGEST:
                    raise InputError(
                        f"{shortened(number, ECHOED)} has {len(number):,} digits; "
                        f"an operand may have up to {LONGEST}"
                    )
            return int(numbers[0]), int(numbers[1])
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
        digits = tokens[: tokens.index(END)] if END in tokens else []
        if not digits or max(digits) > 9 or set(tokens[len(digits) :]) != {END}:
            return "".join(SYMBOLS[token] for token in tokens)
        if self.order == "least":
            digits = digits[::-1]
        return str(int("".join(map(str, digits))))

    def symbols(self, tokens: "Int[Tensor, 'T']") -> list[str]:
        """A printable sign for each token."""
        return [SYMBOLS[token] for token in tokens.tolist()]

    def _in_order(self, count: int) -> "Int[Tensor, 'C']":
        """Columns as they are written."""
        columns = torch.arange(count)
        return columns if self.order == "least" else columns.flip(0)


def verifiable(task: Task) -> Addition:
    """Refuse a task that has nothing to verify, or more pairs than anybody can wait for."""
    if not isinstance(task, Addition):
        raise LabError(f"verify decodes sums, but the task is {brief(task.kind)}; use evaluate instead")
    if task.shortest:
        raise LabError("verify decodes sums of one length, and lengths vary here; use lengths instead")
    if task.digits > MOST_DIGITS:
        raise LabError(
            f"verify decodes every pair, and operands of {task.digits} digits have 10^{2 * task.digits}; "
            f"the limit is {MOST_DIGITS} digits, so use evaluate instead"
        )
    return task
