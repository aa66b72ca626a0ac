"""``attnlab.watch``: a loop of somebody's own gets findings while it runs, and a diagnosis at its end."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attnlab as al
from attnlab.doctor.findings import Diagnosis, Finding, Remedy
from attnlab.doctor.looking import Looks
from attnlab.doctor.patient import Patient
from attnlab.errors import InputError
from attnlab.tables.doctor import brief_lines
from tiny import same

STEPS = 240


def counted(count: int) -> tuple[Tensor, Tensor]:
    """Tokens, and whether there is none, one or more of the first kind."""
    tokens = torch.randint(5, (count, 6))
    return tokens, (tokens == 0).sum(dim=1).clamp(max=2)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.readout = nn.Embedding(5, 12), nn.Linear(12, 3)
        self.place = nn.Parameter(torch.randn(6, 12) / 12)
        layer = nn.TransformerEncoderLayer(12, 2, 16, dropout=0.0, batch_first=True)
        self.stack = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.readout(self.stack(self.embed(tokens) + self.place).mean(dim=1))
        return found


def trained(
    rate: float,
    *,
    tell: Callable[[Finding], None] | None = None,
    watched: bool = True,
    steps: int = STEPS,
    shuffled: bool = False,
) -> tuple[Any, nn.Module]:
    torch.manual_seed(4)
    (tokens, labels), held = counted(640), counted(200)
    if shuffled:
        labels = labels[torch.randperm(len(labels))]
    model, loss = Reader(), nn.CrossEntropyLoss()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    watch = (
        al.watch(model, loss, optimiser, steps=steps, tell=tell or (lambda _: None)) if watched else None
    )
    for step in range(steps):
        rows = torch.randint(640, (32,))
        optimiser.zero_grad()
        loss(model(tokens[rows]), labels[rows]).backward()
        optimiser.step()
        if step % 40 == 39:
            with torch.no_grad():
                loss(model(held[0]), held[1])
    return watch, model


def outcome(found: Diagnosis, kind: str) -> str:
    return next(each.outcome for each in found.checks if each.kind == kind)


def test_a_healthy_loop_has_no_fault() -> None:
    watch, model = trained(0.01)
    found = watch.diagnose()
    assert [each for each in found.findings if each.severity != "note"] == []
    assert watch.findings == []
    assert found.run == "Reader"
    for kind in ("rate-too-low", "rate-too-high", "memorising", "parameters-frozen", "constant-predictor"):
        assert outcome(found, kind) == "clear"
    assert outcome(found, "scale-missing") == outcome(found, "positions-ignored") == "clear"
    assert outcome(found, "kept-by-wrong-metric") == "inapplicable"
    assert watch.steps == STEPS
    assert same(model, trained(0.01, watched=False)[1])


def test_a_rate_that_is_too_low_is_found() -> None:
    watch, _ = trained(1e-6)
    found = watch.diagnose()
    assert "rate-too-low" in found.kinds
    finding = next(each for each in found.findings if each.kind == "rate-too-low")
    assert finding.evidence["all steps over the weights"] < 0.01
    line = r'for group in optimiser\.param_groups: group\["lr"\] = (0\.\d+)'
    found_rate = re.fullmatch(line, finding.remedy.code)
    assert found_rate is not None
    assert 0.001 < float(found_rate[1]) < 0.02  # by the first steps, which rounding changes
    assert finding.remedy.command == ""
    assert finding.remedy.settings == {}


def test_weights_that_no_optimiser_has_are_found() -> None:
    model, (tokens, labels) = Reader(), counted(64)
    optimiser = torch.optim.Adam(model.stack.parameters(), lr=0.01)
    watch = al.watch(model, F.cross_entropy)
    for _ in range(20):
        watch.loss(model(tokens), labels).backward()
        optimiser.step()
    found = watch.diagnose()
    assert "parameters-frozen" in found.kinds
    finding = next(each for each in found.findings if each.kind == "parameters-frozen")
    assert finding.evidence["share of matrices"] == pytest.approx(3 / 7)


def diverging(tell: Callable[[Finding], None] | None) -> Any:
    """A loss that grows by the same factor in each step."""
    torch.manual_seed(1)
    model, loss, inputs = nn.Linear(2, 2, bias=False), nn.MSELoss(), 2**0.5 * torch.eye(2)
    optimiser = torch.optim.SGD(model.parameters(), lr=2.05)
    watch = al.watch(model, loss, optimiser, tell=tell)
    for _ in range(300):
        optimiser.zero_grad()
        loss(model(inputs), inputs).backward()
        optimiser.step()
        if watch.findings:
            break
    return watch


def test_a_finding_is_told_once_it_is_sure(capsys: pytest.CaptureFixture[str]) -> None:
    told = list[Finding]()
    watch = diverging(told.append)
    assert [each.kind for each in told] == ["rate-too-high"]
    assert watch.findings == told
    assert watch.steps == 128  # the second look
    assert capsys.readouterr().err == ""
    diverging(None)
    said, tried = capsys.readouterr().err.splitlines()
    assert said.startswith("rate-too-high (serious): ")
    assert tried == '  try: for group in optimiser.param_groups: group["lr"] = 0.15'


def test_what_is_told_fits_two_narrow_lines() -> None:
    command = "attnlab train --spec runs/a-run-with-a-name/spec.json --training.lr 0.002 --training.clip 1"
    remedy = Remedy("try a rate of 0.002", command=command, code="x = 1")
    finding = Finding("rate-too-low", "serious", 0.8, "optimisation", "log", "so " * 60, {}, remedy)
    said, tried = brief_lines(finding)
    assert len(said) <= 80
    assert said.startswith("rate-too-low (serious): so so")
    assert said.endswith(" ...")
    assert tried == "  try: --training.lr 0.002 --training.clip 1"


def test_looks_come_at_shares_of_the_steps_or_at_doublings() -> None:
    known, unknown = Looks(lambda _: None, 200), Looks(lambda _: None)
    assert [n for n in range(1, 201) if known.due(n)] == [10, 20, 40, 70, 100, 150, 200]
    assert [n for n in range(1, 600) if unknown.due(n)] == [64, 128, 256, 512]
    unknown.look(Patient("nothing"))
    assert unknown.told == []


def test_validation_data_may_be_given() -> None:
    model, (tokens, labels) = Reader(), counted(64)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    with al.watch(model, F.cross_entropy, optimiser) as watch:
        for _ in range(12):
            optimiser.zero_grad()
            watch.loss(model(tokens), labels).backward()
            optimiser.step()
        model.stack.eval()
        loss = watch.validate(tokens, labels)
        assert model.training
        assert not model.stack.training
        assert loss == pytest.approx(watch.validate({"tokens": tokens}, labels))
        found = watch.diagnose(al.examples(tokens, labels), training=al.examples(tokens, labels))
    assert outcome(found, "splits-overlap") == "found"
    assert not model._forward_hooks
    assert watch.observed().steps == 12


class Named(nn.Module):
    """It is called by names, gives no tensor and computes no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, *, pixels: Tensor, labels: Tensor | None = None) -> dict[str, Any]:
        logits = self.inner(pixels)
        return {"loss": None if labels is None else F.cross_entropy(logits, labels), "logits": logits}


def test_a_model_without_attention_is_asked_what_it_can_be_asked() -> None:
    torch.manual_seed(2)
    model, inputs = Named(), torch.randn(80, 3)
    labels = (inputs.sum(dim=1) > 0).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    watch = al.watch(model)
    for _ in range(100):
        optimiser.zero_grad()
        model(pixels=inputs, labels=labels)["loss"].backward()
        optimiser.step()
    found = watch.diagnose()
    assert [each for each in found.findings if each.severity != "note"] == []
    assert outcome(found, "rate-too-high") == outcome(found, "parameters-frozen") == "clear"
    reasons = {each.kind: each.reason for each in found.checks}
    assert reasons["scale-missing"] == "the model has no attention"


def test_what_cannot_be_checked_is_named() -> None:
    model = nn.Linear(2, 2)
    found = al.watch(model, nn.MSELoss()).diagnose()
    assert found.findings == []
    reasons = {each.kind: each.reason for each in found.checks}
    assert reasons["rate-too-high"] == "no loss of a step was heard"
    assert reasons["constant-predictor"] == (
        "inputs and targets were not seen example by example; give data"
    )
    optimiser = torch.optim.Rprop(model.parameters())
    watch = al.watch(model, F.mse_loss, optimiser)
    for _ in range(12):
        optimiser.zero_grad()
        watch.loss(model(torch.ones(3, 2)), torch.ones(3, 2)).backward()
        optimiser.step()
    reasons = {each.kind: each.reason for each in watch.diagnose().checks}
    assert reasons["parameters-frozen"] == "what rates Rprop wants is not known"


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (("model",), "model is a str; give an nn.Module"),
        ((nn.Linear(2, 2), 3), "loss is a int; give a module or a function"),
        ((nn.Linear(2, 2), None, ["adam"]), "optimiser is a str; give one of torch.optim, or several"),
    ],
)
def test_what_cannot_be_watched_is_refused(given: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(InputError, match=re.escape(rule)):
        al.watch(*given)
    with pytest.raises(InputError, match="steps is 0; it must be 1 or more"):
        al.watch(nn.Linear(2, 2), steps=0)


def test_the_diagnosis_is_a_page(tmp_path: Path) -> None:
    watch, _ = trained(1e-6, steps=60)
    (page,) = watch.diagnose().save(tmp_path / "doctor.html")
    text = page.read_text()
    assert "Diagnosis of Reader" in text
    assert "rate-too-low" in text


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs/howto/doctor.md").read_text()
    section = page.partition("## A training loop of your own")[2]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    known: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "docs/howto/doctor.md", "exec"), known)
    assert known["found"].kinds[0] == "rate-too-low"
    assert "param_groups" in known["found"].findings[0].remedy.code
