"""The doctor finds what is planted, by its kind, and nothing serious where all is well."""

import json
import time
from pathlib import Path

import pytest
import torch

import attnlab as al
from attnlab.doctor.causes import ranked
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.fault import Fault
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Diagnosis, Finding, Remedy
from attnlab.doctor.paths import PositionsIgnored
from attnlab.doctor.patient import Patient
from attnlab.errors import InputError
from attnlab.models import build_for
from attnlab.results import parts_html
from attnlab.sets import Examples
from attnlab.specs import with_settings
from sick_models import PADDING, Case, sick

EXACT = (
    "causal-mask-missing",
    "causal-mask-inverted",
    "causal-mask-off-by-one",
    "scale-missing",
    "scale-twice",
    "softmax-axis",
    "query-key-shared",
    "heads-uniform",
    "heads-duplicated",
    "heads-dead",
    "residual-missing",
    "norm-missing",
    "memory-ignored",
    "dropout-in-evaluation",
    "cache-disagrees",
    "decoding-disagrees",
)
"""Faults that can be planted in the encoder-decoder."""


def found_in(case: Case) -> Diagnosis:
    return diagnose(Patient("planted", model=case.model, examples=case.examples))


def of(found: Diagnosis, kind: str) -> Finding:
    return next(each for each in found.findings if each.kind == kind)


def test_a_healthy_model_has_no_fault() -> None:
    for case in (sick(), sick(padded=True), sick(classes=5), sick(classes=5, padded=True)):
        found = found_in(case)
        assert [each for each in found.findings if each.severity != "note"] == []
        assert {"memory-ignored", "scale-missing"} <= {each.kind for each in found.checks}


@pytest.mark.parametrize("kind", EXACT)
def test_a_planted_fault_is_found_and_stands_first(kind: str) -> None:
    assert found_in(sick(kind)).kinds[0] == kind


@pytest.mark.parametrize("kind", ["causal-mask-missing", "causal-mask-inverted", "causal-mask-off-by-one"])
def test_a_wrong_causal_mask_is_named(kind: str) -> None:
    found = found_in(sick(kind))
    assert [each for each in found.kinds if each.startswith("causal")] == [kind]
    assert of(found, kind).severity == "serious"
    assert of(found, kind).evidence["change before the replaced token"] > 0.01


def test_the_scale_is_measured() -> None:
    missing = of(found_in(sick("scale-missing")), "scale-missing").evidence
    assert missing["scale · √K at encoder.0.self"] == pytest.approx(7**0.5, rel=1e-3)
    twice = of(found_in(sick("scale-twice")), "scale-twice").evidence
    assert twice["scale · √K at decoder.1.cross"] == pytest.approx(7**-0.5, rel=1e-3)
    assert len(twice) == 6


def test_positions_that_are_dropped_are_found() -> None:
    case = sick("positions-ignored", classes=5)
    examples = Examples(case.examples.inputs, (case.examples.targets + 1) % 5)
    found = found_in(Case(case.model, examples))
    assert of(found, "positions-ignored").severity == "serious"
    assert of(found_in(case), "positions-ignored").severity == "note"  # it is right all the same
    assert "positions-ignored" in found_in(sick("positions-ignored")).kinds


def test_padding_that_is_seen_is_found() -> None:
    assert "padding-seen" in found_in(sick("padding-seen", padded=True)).kinds
    assert "padding-seen" in found_in(sick("padding-seen", classes=5, padded=True)).kinds
    (check,) = (each for each in found_in(sick("padding-seen")).checks if each.kind == "padding-seen")
    assert (check.outcome, check.reason) == ("inapplicable", "inputs have no padding")
    assert PADDING not in sick().examples.inputs[0]


def test_queries_and_keys_that_are_exchanged_are_found() -> None:
    found = found_in(sick("query-key-exchanged"))
    assert of(found, "query-key-exchanged").severity == "serious"
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["decoding-disagrees"].startswith("the model fails: ")


def test_a_start_token_that_is_missing_is_found() -> None:
    case = sick()
    source, fed = case.examples.inputs
    unshifted = Examples((source, case.examples.targets), case.examples.targets)
    assert "target-not-shifted" in found_in(Case(case.model, unshifted)).kinds
    whole = torch.arange(23)[:, None] % 7 + torch.arange(fed.shape[1] + 1) % 3
    begun = Examples((source, whole[:, :-1]), whole[:, 1:])
    assert "start-token-missing" in found_in(Case(case.model, begun)).kinds


def test_a_constant_predictor_is_found() -> None:
    case = sick(classes=5)
    with torch.no_grad():
        case.model.read.weight.zero_()
    targets = torch.arange(23) % 5
    found = found_in(Case(case.model, Examples(case.examples.inputs, targets)))
    assert {"constant-predictor", "majority-class"} <= set(found.kinds)
    assert of(found, "majority-class").evidence["share of the most frequent class"] == 5 / 23


def test_what_fails_is_named_and_the_rest_is_done() -> None:
    case = sick(classes=5)
    with torch.no_grad():
        case.model.read.weight.fill_(float("nan"))
    found = found_in(case)
    reasons = {each.reason for each in found.unchecked}
    assert "the model gives logits that are not finite" in reasons
    assert found.findings == []
    wrong = Examples((torch.full((3, 4), 99),), torch.zeros(3, dtype=torch.long))
    reasons = {each.reason for each in found_in(Case(sick(classes=5).model, wrong)).unchecked}
    assert "the model fails: index out of range in self" in reasons


def test_the_model_and_the_generator_are_left_as_they_were() -> None:
    case = sick()
    case.model.train()
    case.model.read.eval()
    before = torch.get_rng_state()
    found_in(case)
    assert torch.equal(torch.get_rng_state(), before)
    assert case.model.training
    assert not case.model.read.training


def test_every_kind_is_one_class_that_says_what_it_looks_at() -> None:
    kinds = [each.kind for each in FAULTS]
    assert len(kinds) == len(set(kinds)) >= 24
    for each in FAULTS:
        assert each.looks_at
        assert (each.__doc__ or "").strip()
        assert issubclass(each, Fault)


def test_findings_come_in_the_order_of_their_weight() -> None:
    def finding(severity: str, confidence: float) -> Finding:
        return Finding("x", severity, confidence, "data", "log", "", {}, Remedy(""))  # type: ignore[arg-type]

    rows = [finding("note", 1.0), finding("serious", 0.5), finding("warning", 0.9), finding("serious", 0.9)]
    order = [(each.severity, each.confidence) for each in ranked(rows)]
    assert order == [("serious", 0.9), ("serious", 0.5), ("warning", 0.9), ("note", 1.0)]


@pytest.mark.parametrize("name", ["adder", "sorter", "digit", "grid"])
def test_nothing_is_found_in_what_is_shipped_and_it_is_quick(name: str) -> None:
    began = time.process_time()
    found = al.load(f"zoo:{name}").diagnose()
    assert [each.kind for each in found.findings if each.severity != "note"] == []
    assert time.process_time() - began < 20  # seconds of this process, not of the clock
    assert [each.reason for each in found.unchecked if "parts" in each.reason] == []


def test_a_diagnosis_shows_itself() -> None:
    found = found_in(sick("causal-mask-missing"))
    page = parts_html(found.tables())
    assert "causal-mask-missing" in page
    assert "torch.tril" in page or ".tril()" in page
    assert Diagnosis.from_json(json.loads(json.dumps(found.to_json()))) == found
    axes = found.plot("doctor-causal-mask-missing").axes[0]
    assert axes.get_xlabel() == "tokens behind the replaced one"


def test_a_wrapped_module_is_diagnosed(tmp_path: Path) -> None:
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(12, 3, dim_feedforward=7, batch_first=True)
    model = al.wrap(layer, inputs=[torch.zeros(1, 5, 12)], output=lambda given: given.mean(dim=1))
    given = torch.randn(11, 5, 12)
    found = model.diagnose(al.examples(given, model(given).argmax(dim=-1)))
    outcomes = {each.kind: each.outcome for each in found.checks}
    assert outcomes["scale-missing"] == outcomes["softmax-axis"] == outcomes["residual-missing"] == "clear"
    assert found.serious == []


class Counter(torch.nn.Module):
    """An encoder-decoder that says the number after the one it is fed, so that it decodes as it should."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(7, 12)
        self.core = torch.nn.Transformer(12, 2, 1, 1, 5, batch_first=True)

    def forward(self, source: torch.Tensor, fed: torch.Tensor) -> torch.Tensor:
        causal = torch.nn.Transformer.generate_square_subsequent_mask(fed.shape[1])
        seen = self.core(self.embed(source), self.embed(fed), tgt_mask=causal)
        return 1e-3 * seen[..., :7] + torch.nn.functional.one_hot((fed + 1) % 7, 7)


def test_an_answer_without_a_start_token_is_found_in_a_module_of_ones_own() -> None:
    torch.manual_seed(5)
    source, answers = torch.randint(7, (67, 5)), (torch.randint(7, (67, 1)) + torch.arange(4)) % 7
    model = al.wrap(Counter(), inputs=(source[:2], answers[:2, :-1]))
    found = model.diagnose(al.examples((source, answers[:, :-1]), answers[:, 1:]))
    assert found.kinds[:2] == ["start-token-missing", "decoding-disagrees"]
    assert of(found, "decoding-disagrees").explained_by == "start-token-missing"
    evidence = of(found, "start-token-missing").evidence
    counts = answers[:64, 0].bincount()
    assert evidence.pop("different first tokens") == len(torch.unique(answers[:16, 0]))
    assert evidence.pop("accuracy with the first token given") == 1.0
    assert len(evidence) == 3
    for name, share in evidence.items():
        token = int(name.rpartition(" ")[2])
        assert share == counts[token] / 64 >= counts.sort().values[-3] / 64
    free = (answers[:64, 0] == answers[0, 0]).double().mean().item()  # decoding starts with the first's
    assert of(found, "decoding-disagrees").evidence == {
        "accuracy with true tokens": 1.0,
        "accuracy by decoding": free,
    }


class Bag(torch.nn.Module):
    """Attentions with nothing around them."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.embed, self.read = torch.nn.Embedding(50, 12), torch.nn.Linear(12, 5)
        self.parts = torch.nn.ModuleList(
            torch.nn.MultiheadAttention(12, 3, batch_first=True) for _ in range(count)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for part in self.parts:
            x = part(x, x, x)[0]
        read: torch.Tensor = self.read(x.mean(dim=1))
        return read


def test_around_a_models_only_attention_a_missing_sum_is_a_note() -> None:
    torch.manual_seed(7)
    tokens = torch.randint(50, (61, 7))
    found = []
    for count in (1, 2):
        model = al.wrap(Bag(count), inputs=(tokens[:2],))
        diagnosis = model.diagnose(al.examples(tokens, model(tokens).argmax(dim=-1)))
        found.append(of(diagnosis, "residual-missing").severity)
    assert found == ["note", "serious"]


def test_whether_order_counts_is_not_said_of_a_model_that_hardly_reads_its_input() -> None:
    case = sick(classes=5)
    with torch.no_grad():
        case.model.place.weight.mul_(0.1)
        case.model.read.bias.copy_(torch.arange(5.0))
        case.model.read.weight.mul_(1e-3)
        influence = Patient("faint", model=case.model, examples=case.examples).influence
        case.model.read.weight.mul_(3e-4 / influence)
    found = found_in(case)
    assert found.kinds[0] == "constant-predictor"
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["positions-ignored"] == "the logits hardly depend on the input"


def test_what_cannot_be_diagnosed_is_refused() -> None:
    with pytest.raises(InputError, match="Linear is neither a run nor a model that can be probed"):
        al.diagnose(torch.nn.Linear(2, 3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a model is probed with examples"):
        al.diagnose(sick().model)
    with pytest.raises(InputError, match="a run has examples of its own"):
        al.diagnose("zoo:adder", sick().examples)
    with pytest.raises(InputError, match="budget is -1"):
        al.diagnose("zoo:adder", budget=-1)


def test_a_model_that_nothing_gets_through_is_named() -> None:
    case = sick(classes=5)
    with torch.no_grad():
        case.model.read.weight.zero_()
    found = found_in(case)
    assert of(found, "input-ignored").severity == "serious"
    assert of(found, "input-ignored").confidence == 0.6
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["heads-dead"] == reasons["positions-ignored"] == "no logit depends on the input"


def test_an_answer_that_leaks_past_the_masks_is_found() -> None:
    case = sick()

    def mix(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
        return (given[0] - given[0].mean(dim=1, keepdim=True),)

    hook = case.model.norm.register_forward_pre_hook(mix)
    found = found_in(case)
    hook.remove()
    assert "answer-leaks" in found.kinds
    assert not any(each.startswith("causal") for each in found.kinds)


def test_a_model_that_knows_neighbours_alone_ignores_positions() -> None:
    spec = with_settings(
        al.spec("sorting"), {"model.positions": "none", "task.valid": 37, "task.low": 5, "task.high": 11}
    )
    valid = spec.task.splits(7).valid
    patient = Patient("window", model=build_for(spec), examples=valid)
    (found,) = diagnose(patient, faults=[PositionsIgnored]).findings
    assert found.text.startswith("the input reversed changes no logit")
    placed = build_for(with_settings(spec, {"model.positions": "learned"}))
    assert diagnose(Patient("placed", model=placed, examples=valid), faults=[PositionsIgnored]).kinds == []
