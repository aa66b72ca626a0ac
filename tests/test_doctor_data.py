"""Labels that are wrong or dealt out anew, splits that are drawn differently: found where planted only."""

from typing import Any, final

import numpy as np
import pytest
import torch
from torch import Tensor

from attnlab.doctor import examples, labels, quick, splits
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.patient import Patient
from attnlab.model import Model
from attnlab.sets import Examples

CLASSES = 5


@final
class Knowing(Model):
    """Says the first token of a row, surely or less so: its own mistakes are where it is unsure."""

    def __init__(self, *, noise: float = 0.0, by_heart: Examples | None = None) -> None:
        super().__init__()
        self.noise = noise
        self.known: dict[tuple[int, ...], int] = {}
        if by_heart is not None:
            rows = map(tuple, by_heart.inputs[0].tolist())
            self.known = dict(zip(rows, by_heart.targets.tolist(), strict=True))

    def forward(self, rows: Tensor) -> Tensor:
        said = [self.known.get(tuple(row), row[0] % CLASSES) for row in rows.tolist()]
        sure = 1 + rows[:, 1:].double().mean(dim=1, keepdim=True)  # a property of the input
        places = torch.arange(1, rows.shape[1] + 1) * torch.arange(1, CLASSES + 1)[:, None]
        shaken = (rows.double() @ places.T.sin().double() * 4375.8).frac()  # of it as well
        return sure * torch.eye(CLASSES)[said] * 2 + self.noise * shaken


def rows(count: int, *, seed: int, length: int = 7, most: int = CLASSES) -> Examples:
    chance = torch.Generator().manual_seed(seed)
    given = torch.randint(0, most, (count, length), generator=chance)
    return Examples((given,), given[:, 0] % CLASSES)


def flipped(whole: Examples, share: float, *, seed: int = 3) -> Examples:
    """With other labels for the first of the examples."""
    count = round(share * len(whole))
    moved = torch.randint(1, CLASSES, (count,), generator=torch.Generator().manual_seed(seed))
    targets = whole.targets.clone()
    targets[:count] = (targets[:count] + moved) % CLASSES
    return Examples(whole.stored, targets)


def shuffled(whole: Examples) -> Examples:
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(5))
    return Examples(whole.stored, whole.targets[order])


def looked(train: Examples | None, valid: Examples, faults: Any, model: Model | None = None) -> Diagnosis:
    patient = Patient("data", model=model or Knowing(), examples=valid, training=train)
    return diagnose(patient, faults=faults)


def the(found: Diagnosis) -> Finding:
    (only,) = found.findings
    return only


# Labels


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_labels_that_are_partly_wrong_are_found_and_counted(share: float) -> None:
    train, valid = rows(1500, seed=1), rows(700, seed=2)
    found = the(looked(flipped(train, share), valid, labels.FAULTS))
    assert found.kind == "labels-wrong"
    assert "training labels are wrong" in found.text
    assert found.evidence["share of surest training answers that are wrong"] == pytest.approx(
        share, abs=0.06
    )
    assert found.evidence["validation accuracy"] == 1
    found = the(looked(train, flipped(valid, share), labels.FAULTS))
    assert found.evidence["share of surest validation answers that are wrong"] == pytest.approx(
        share, abs=0.06
    )
    assert found.evidence["share of repeated inputs with different answers"] == 0


def test_mistakes_of_a_model_that_is_unsure_are_no_wrong_labels() -> None:
    train, valid = rows(1500, seed=1), rows(700, seed=2)
    for noise in (4.0, 6.0, 7.0):
        model = Knowing(noise=noise)
        with torch.no_grad():
            right = (model(valid.inputs[0]).argmax(dim=1) == valid.targets).double().mean().item()
        assert 0.4 < right < 0.99
        assert looked(train, valid, [labels.LabelsWrong], model).kinds == []


@final
class Saying(Model):
    """Says rows as they are, as surely as ``strengths`` has it place by place; some tokens it likes."""

    def __init__(self, *strengths: float) -> None:
        super().__init__()
        self.strengths = torch.tensor(strengths)

    def forward(self, rows: Tensor, fed: Tensor) -> Tensor:
        likes = (7 * torch.arange(TOKENS) + 3 * torch.arange(fed.shape[1])[:, None]).sin()
        return torch.eye(TOKENS)[rows] * self.strengths[:, None] + likes


TOKENS = 11


def said(count: int, *, seed: int, wrong: float = 0.0) -> Examples:
    """Rows to be said as they are; of the first of them the row of another one."""
    given = torch.randint(0, TOKENS, (count, 3), generator=torch.Generator().manual_seed(seed))
    most = round(wrong * count)
    targets = torch.cat((given[:most].roll(1, 0), given[most:]))
    return Examples((given, torch.cat((0 * targets[:, :1], targets[:, :-1]), dim=1)), targets)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.6])
def test_labels_that_fit_no_better_than_those_of_others_are_wrong(share: float) -> None:
    model = Saying(5.0, 1.0, 0.0)  # which says hardly any row rightly
    train, valid = said(900, seed=1, wrong=share), said(500, seed=2, wrong=share)
    found = the(looked(train, valid, [labels.LabelsWrong], model))
    assert found.evidence["validation accuracy"] < 0.2
    assert found.severity == "serious"
    assert "fit no better than those of other examples" in found.text
    for split in ("training", "validation"):
        known = found.evidence[f"share of {split} labels that fit no better than others"]
        assert known == pytest.approx(share, abs=0.2)


@pytest.mark.parametrize("strengths", [(0.0, 0.0, 0.0), (0.5, 0.0, 0.5), (1.0, 1.0, 0.0), (2.0, 0.0, 0.0)])
def test_labels_of_which_a_model_knows_little_are_not_wrong(strengths: tuple[float, ...]) -> None:
    found = looked(said(900, seed=1), said(500, seed=2), [labels.LabelsWrong], Saying(*strengths))
    assert found.kinds == []


@final
class Calibrated(Model):
    """Tells a first token of 0 from others, and knows that a third of the labels are wrong."""

    def forward(self, rows: Tensor) -> Tensor:
        sure = 0.6 + 0.06 * rows[:, 1:].double().mean(dim=1)  # a property of the input
        two = torch.eye(2, dtype=torch.double)[(rows[:, 0] == 0).long()]
        return sure[:, None] * two


def two_classes(count: int, *, seed: int, wrong: float) -> Examples:
    """Whether the first token is 0, and the other class for a share of the examples."""
    whole = rows(count, seed=seed)
    right = (whole.stored[0][:, 0] == 0).long()
    chance = torch.rand(count, generator=torch.Generator().manual_seed(seed + 1))
    return Examples(whole.stored, torch.where(chance < wrong, 1 - right, right))


def test_wrong_labels_of_two_classes_are_found_where_little_can_be_learned() -> None:
    train, valid = (two_classes(count, seed=count, wrong=0.34) for count in (1500, 700))
    found = the(looked(train, valid, [labels.LabelsWrong], Calibrated()))
    assert found.text.endswith("as many as that are wrong however sure it is")
    assert found.evidence["share of surest training answers that are wrong"] == pytest.approx(
        0.34, abs=0.08
    )
    train, valid = (two_classes(count, seed=count, wrong=0.0) for count in (1500, 700))
    assert looked(train, valid, [labels.LabelsWrong], Calibrated()).kinds == []


def test_inputs_with_two_answers_are_counted() -> None:
    few = rows(1500, seed=1, length=2)  # 25 different rows
    found = the(looked(flipped(few, 0.2), rows(500, seed=2, length=2), [labels.LabelsWrong]))
    assert found.evidence["share of repeated inputs with different answers"] == 1


def test_labels_that_were_learned_by_heart_after_a_shuffle_are_found() -> None:
    train, valid = shuffled(rows(1500, seed=1)), rows(700, seed=2)
    model = Knowing(by_heart=train)
    model.forward = _guess_what_is_not_known(model)  # type: ignore[method-assign]
    found = the(looked(train, valid, labels.FAULTS, model))
    assert found.kind == "labels-shuffled"
    assert found.evidence["training accuracy"] > 0.99
    assert found.evidence["p of what is learned from validation labels"] < 0.001
    assert found.evidence["p of what is learned from training labels"] > 0.001
    both = the(looked(train, shuffled(valid), labels.FAULTS, model))
    assert both.text.startswith("training labels were learned by heart")
    few = Examples((train.stored[0][:90],), train.targets[:90])
    outcomes = {c.kind: c.outcome for c in looked(few, shuffled(valid), labels.FAULTS, model).checks}
    assert outcomes["labels-shuffled"] == "unchecked"


def _guess_what_is_not_known(model: Knowing) -> Any:
    def forward(given: Tensor) -> Tensor:
        said = [model.known.get(tuple(row), sum(row[2:]) % CLASSES) for row in given.tolist()]
        return torch.eye(CLASSES)[said]

    return forward


def test_labels_that_a_model_knows_are_not_shuffled() -> None:
    found = looked(rows(1500, seed=1), rows(700, seed=2), labels.FAULTS)
    assert found.kinds == []
    assert {each.outcome for each in found.checks} == {"clear"}


# Splits


def test_splits_that_are_drawn_alike_are_not_accused() -> None:
    for seed in range(8):
        found = looked(rows(400, seed=seed), rows(211, seed=100 + seed), splits.FAULTS)
        assert found.kinds == []


def test_of_equal_samples_few_are_told_apart_by_chance() -> None:
    chance = np.random.default_rng(7)
    p = [quick.apart(*chance.dirichlet(np.ones(7), (2, 53)))[1] for _ in range(40)]
    assert sum(each <= 0.05 for each in p) <= 6  # of 40 p-values 2 are expected
    assert 0.3 < np.mean(p) < 0.7


@pytest.mark.parametrize(
    ("what", "valid"),
    [
        ("tokens", rows(300, seed=2, most=CLASSES - 1)),
        ("answers", Examples(rows(300, seed=2).stored, (rows(300, seed=2).targets > 2).long())),
        ("inputs", Examples((rows(300, seed=2).stored[0].sort(dim=1).values,), rows(300, seed=2).targets)),
    ],
)
def test_splits_that_are_drawn_differently_are_found(what: str, valid: Examples) -> None:
    found = the(looked(rows(400, seed=1), valid, [splits.SplitsDiffer]))
    assert f"difference of {what}" in found.evidence
    assert found.evidence["p, adjusted"] <= 0.001


def test_numbers_that_are_drawn_differently_are_found() -> None:
    chance = torch.Generator().manual_seed(1)
    pixels = torch.rand(600, 5, 5, generator=chance)
    targets = torch.arange(600) % CLASSES
    darker = Examples((pixels[300:] * 0.8,), targets[300:])
    assert set(_tests(pixels, Examples((pixels[300:],), targets[300:]))) == {"answers", "inputs"}
    assert _tests(pixels, darker)["inputs"][1] <= 0.001


def test_lengths_that_are_drawn_differently_are_found() -> None:
    train, valid = rows(300, seed=1), rows(300, seed=2)
    valid.stored[0][:150, 5:] = 9
    found = splits._tests(quick.draw(train, 300, 9), quick.draw(valid, 300, 9))
    assert found["lengths"][0] == pytest.approx(0.5, abs=0.05)
    assert found["lengths"][1] <= 0.001
    assert found["tokens"][1] > 0.001


def _tests(pixels: Tensor, valid: Examples) -> dict[str, tuple[float, float, float]]:
    train = Examples((pixels[:300],), torch.arange(300) % CLASSES)
    return splits._tests(quick.draw(train, 300), quick.draw(valid, 300))


def test_examples_that_occur_again_and_again_are_found() -> None:
    once = rows(31, seed=1)
    many = Examples((once.stored[0].repeat(5, 1),), once.targets.repeat(5))
    found = the(looked(many, rows(300, seed=2), [splits.ExamplesRepeated]))
    assert found.evidence["share of repetitions"] == pytest.approx(0.8)
    assert found.severity == "note"  # it is right all the same
    assert looked(once, rows(300, seed=2), [splits.ExamplesRepeated]).kinds == []


def test_too_few_examples_for_a_test_are_named() -> None:
    found = looked(rows(39, seed=1), rows(300, seed=2), [splits.SplitsDiffer])
    assert found.checks[0].reason == "there are 39 train examples, and a test needs 40"


# Inputs


def test_tokens_that_never_occur_in_training_inputs_are_found() -> None:
    valid = rows(300, seed=2)
    valid.stored[0][3:23, 2] = 8
    found = the(looked(rows(400, seed=1), valid, [examples.AnswerUnseen]))
    assert found.text == "tokens 8 are asked for but never occur in training"
    assert found.evidence == {"answers never seen": 0, "input tokens never seen": 1, "share by chance": 0}
    assert found.severity == "warning"


def test_a_token_that_chance_keeps_from_training_is_a_note() -> None:
    valid = rows(300, seed=2)
    valid.stored[0][3, 2] = 8
    found = the(looked(rows(400, seed=1), valid, [examples.AnswerUnseen]))
    assert found.severity == "note"
    assert found.text.endswith("as chance has it with 400 training examples")


def test_inputs_that_hardly_differ_are_unscaled() -> None:
    faint = Examples((torch.rand(9, 4, 4) / 255,), torch.arange(9) % 2)
    found = the(looked(faint, faint, [examples.InputsUnscaled]))
    assert found.evidence["spread"] < 0.002
