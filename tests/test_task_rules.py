"""A task that breaks a rule is refused before any training, in one sentence that names the file, the method
and the rule."""

from pathlib import Path
from typing import Any

import pytest

from attnlab import registry
from attnlab.checks import check_task
from attnlab.errors import SpecError
from attnlab.registry import find_task, task_names
from attnlab.runs import create_run
from attnlab.specs import Spec, TokensModel, Training
from commands import attnlab, complaint
from made_up_digits import write_pictures

PARITY = '''
import random
from dataclasses import dataclass
from typing import ClassVar

import torch
from attnlab import Examples, InputError, Shown, Splits, Task, Tokens


@dataclass(frozen=True, kw_only=True)
class Parity(Task):
    """Whether the number of ones is odd."""

    kind: ClassVar[str] = "parity"
    vocabulary: ClassVar[int] = 2
    tokens: ClassVar[Tokens] = Tokens.shared(2)
    train: int = 101
    valid: int = 11
    test: int = 13

    def splits(self, seed):
        numbers = random.Random(seed).sample(range(128), self.train + self.valid + self.test)
        rows = self.examples([[int(bit) for bit in f"{number:07b}"] for number in numbers])
        test, valid = self.test, self.test + self.valid
        return Splits(rows[valid:], rows[test:valid], rows[:test])

    def examples(self, rows):
        bits = torch.tensor(rows)
        return Examples((bits,), bits.sum(dim=1) % 2)

    def parse(self, text):
        if set(text) - set("01") or len(text) != 7:
            raise InputError(f"{text!r} is not seven bits")
        return self.examples([[int(bit) for bit in text]])

    def show(self, example):
        labels = ["01"[bit] for bit in example.inputs[0][0].tolist()]
        return Shown("".join(labels), labels, self.answer(example.targets[0]))

    def answer(self, tokens):
        return ("even", "odd")[int(tokens)]
'''

FLIP = '''
from attnlab.sets import shifted


@dataclass(frozen=True, kw_only=True)
class Flip(Parity):
    """The bits, each as the other one."""

    kind: ClassVar[str] = "flip"
    vocabulary: ClassVar[int] = 4
    start: ClassVar[int] = 3
    target_length: ClassVar[int] = 8

    def examples(self, rows):
        bits = torch.tensor(rows)
        said = torch.nn.functional.pad(1 - bits, (0, 1), value=2)
        return Examples((bits, shifted(said, 3)), said)

    def answer(self, tokens):
        return "".join("01$^"[token] for token in tokens.tolist())
'''
SEQUENCE = PARITY + FLIP


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_tasks", "_sources"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))


SPLITS, ROWS = "return Splits(rows[valid:], rows[test:valid], rows[:test])", "bits.sum(dim=1) % 2"
CHANGED = f"made = {SPLITS[7:]}; object.__setattr__(made.train, {{!r}}, {{}}); return made"
READ = """if set(text) - set("01") or len(text) != 7:
            raise InputError(f"{text!r} is not seven bits")"""
CLASSES: dict[str, tuple[str, str, str]] = {
    "overlap": (
        SPLITS,
        "return Splits(rows[valid:], rows[test:valid], rows[: test + 1])",
        "Parity.splits gave test example 13 the same input as valid example 0; no input may be",
    ),
    "token": (
        "torch.tensor(rows)",
        "torch.tensor(rows) * 4",
        "Parity.splits gave train examples with the input token 4; tokens allows 0 to 3",
    ),
    "no class": (
        ROWS,
        "bits.sum(dim=1) % 3",
        "Parity.splits gave train examples with the target 2; vocabulary allows 0 to 1",
    ),
    "fractions": (
        SPLITS,
        CHANGED.format("targets", "made.train.targets / 9"),
        "targets of type torch.float32; they must be whole numbers",
    ),
    "two targets": (ROWS, "bits[:, :2]", "targets of shape (101, 2); it must be a class each"),
    "global randomness": (
        "random.Random(seed)",
        "random",
        "Parity.splits gave other train examples for the same seed",
    ),
    "torch's randomness": (
        "torch.tensor(rows)",
        "torch.tensor(rows)[torch.randperm(len(rows))]",
        "everything random must come from the seed",
    ),
    "raises": (SPLITS, "1 / 0", "Parity.splits raised ZeroDivisionError: division by zero"),
    "other type": (SPLITS, "return rows", "Parity.splits returned Examples("),
    "nothing": (SPLITS, "pass", "Parity.splits returned None; it must be of type Splits"),
    "empty": (
        SPLITS,
        "return Splits(rows[valid:], rows[:0], rows[:test])",
        "gave valid examples without a single one",
    ),
    "no tensors": (
        SPLITS,
        CHANGED.format("targets", "[1]"),
        "for train; it must be Examples of tensors",
    ),
    "rows": (
        "Examples((bits,)",
        "Examples((bits[:5],)",
        "inputs are not tensors with a row for each target",
    ),
    "own error": (
        SPLITS,
        "raise InputError('the file words.txt is missing')",
        "Parity.splits: the file words.txt is missing",
    ),
    "parse and show": (
        READ,
        f"{READ}\n        text = text.replace('1', '2')",
        "and show raised IndexError: string index out of range",
    ),
    "parse raises": (
        READ,
        "if len(text) != 7:\n            raise KeyError(text)",
        "Parity.parse raised KeyError",
    ),
    "parse accepts": (READ, "text = '9' + text[:0]", "Parity.parse made the token 9 of"),
    "parse returns": (
        "return self.examples([[int(bit) for bit in text]])",
        "return text",
        "it must be of type Examples",
    ),
    "parse two": (
        "return self.examples([[int(bit) for bit in text]])",
        "return self.examples([[0], [1]])",
        "Parity.parse made 2 examples of",
    ),
    "show": (
        'labels = ["01"',
        'labels = ["2"',
        "Parity.show is given train example 0, and show raised IndexError",
    ),
    "labels": (
        "labels, self.answer",
        "[], self.answer",
        "Parity.show is given train example 0, and show gave 0 labels for 7 tokens",
    ),
    "answer": ('("even", "odd")[int(tokens)]', "int(tokens)", "Parity.answer returned"),
    "vocabulary": (
        "vocabulary: ClassVar[int] = 2",
        "vocabulary: ClassVar[int] = 1",
        "Parity.vocabulary is 1; it must be at least 2",
    ),
    "vocabulary type": (
        "vocabulary: ClassVar[int] = 2",
        "vocabulary: ClassVar[int] = 'ab'",
        "Parity.vocabulary returned 'ab'; it must be of type int",
    ),
    "places": (
        "def show(",
        "def places(self):\n        return ['a', 'b']\n\n    def show(",
        "Parity.places returned ['a', 'b']; target_length asks for 1 names",
    ),
    "strata": (
        "def show(",
        "def strata(self, examples):\n        return {'all': [1]}\n\n    def show(",
        "Parity.strata gave [1] for 'all'; a group is a mask of the examples",
    ),
    "resample": (
        SPLITS,
        SPLITS[:-1] + ", lambda epoch: rows[:5])",
        "Parity.splits renews 101 training examples as 5",
    ),
    "augment": (
        SPLITS,
        SPLITS[:-1] + ", None, lambda part, step: None)",
        "Parity.splits gave None for train",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_breaks_a_rule(name: str, tmp_path: Path) -> None:
    old, new, rule = CLASSES[name]
    assert PARITY.count(old) == 1
    (tmp_path / "t.py").write_text(PARITY.replace(old, new))
    refused = complaint("train", "t.py", "--training.steps=1", cwd=tmp_path)
    assert refused.startswith("t.py: Parity.")
    assert rule in refused
    assert not (tmp_path / "runs").exists()


SEQUENCES = {
    "start": (
        "start: ClassVar[int] = 3",
        "start: ClassVar[int] = 4",
        "Flip.start is 4; tokens of an answer go from 0 to 3",
    ),
    "length": (
        "target_length: ClassVar[int] = 8",
        "target_length: ClassVar[int] = 7",
        "Flip.splits gave train examples with targets of shape (101, 8); it must be target_length, 7",
    ),
    "fed": (
        "shifted(said, 3)",
        "said",
        "Flip.splits gave train examples whose second input is not the answer behind the start token",
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_class_with_sequences_that_breaks_a_rule(name: str, tmp_path: Path) -> None:
    old, new, rule = SEQUENCES[name]
    assert SEQUENCE.count(old) == 1
    (tmp_path / "t.py").write_text(SEQUENCE.replace(old, new))
    assert complaint("train", "t.py:Flip", "--training.steps=1", cwd=tmp_path).startswith(f"t.py: {rule}")


def test_functions_name_their_file(tmp_path: Path) -> None:
    text = "import random, attnlab\n@attnlab.task(symbols='01', answer='sequence')\ndef mine(rng):\n"
    (tmp_path / "t.py").write_text(text + "    return random.choice('01') * 3, '1'\n")
    refused = complaint("train", "t.py", "--training.steps=1", cwd=tmp_path)
    assert refused.startswith("t.py: mine uses randomness other than its rng")
    assert not (tmp_path / "runs").exists()


def test_a_class_that_keeps_the_rules_is_trained(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(SEQUENCE)
    for name in ("parity", "Flip"):
        words = ["--training.steps=2", "--training.threads=1", "--out", name]
        attnlab("train", f"t.py:{name}", *words, cwd=tmp_path)
        assert (tmp_path / name / "summary.json").exists()
    assert "1111000" in attnlab("predict", "Flip", "1111000", cwd=tmp_path).stdout


def test_a_flag_that_breaks_a_rule(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(PARITY)
    refused = complaint("train", "t.py", "--train", "1000", cwd=tmp_path)
    assert refused.startswith("t.py: Parity.splits raised ValueError: Sample larger than population")
    assert not (tmp_path / "runs").exists()


def test_a_class_without_a_file_goes_by_its_module(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    exec(PARITY.replace(ROWS, "bits.sum(dim=1)"), names)
    made = names["Parity"]()
    with pytest.raises(SpecError, match=r"^somewhere: Parity\.splits gave train examples with the target"):
        create_run(tmp_path / "run", Spec(task=made, model=TokensModel(), training=Training()))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", task_names())
def test_built_in_tasks_keep_the_rules(kind: str, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"train": 300, "valid": 50, "test": 60}
    if kind == "pictures":  # has no images of its own
        sizes["directory"] = str(write_pictures(tmp_path))
    check_task(find_task(kind)(**sizes))
