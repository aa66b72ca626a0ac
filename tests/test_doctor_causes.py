"""Causes stand above their symptoms, whatever the confidence of either."""

from dataclasses import replace
from graphlib import TopologicalSorter

import pytest

from attnlab.doctor.causes import ranked
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Finding, Remedy, Severity

EXPLAINS = {each.kind: each.explains for each in FAULTS}


def finding(kind: str, severity: Severity = "serious", confidence: float = 0.8) -> Finding:
    return Finding(kind, severity, confidence, "data", "log", "", {}, Remedy(""))


def order(*findings: Finding) -> list[tuple[str, str]]:
    return [(each.kind, each.explained_by) for each in ranked(list(findings), EXPLAINS)]


def test_what_is_explained_is_known_and_nothing_explains_itself() -> None:
    assert {kind for each in EXPLAINS.values() for kind in each} <= EXPLAINS.keys()
    assert list(TopologicalSorter(EXPLAINS).static_order())  # raises CycleError on a circle


@pytest.mark.parametrize(
    ("cause", "symptoms"),
    [
        ("rate-too-high", ["loss-stuck", "constant-predictor", "heads-uniform", "units-dead"]),
        ("rate-too-high", ["clipped-mostly", "rate-too-low", "input-ignored"]),
        ("scale-twice", ["heads-uniform", "rate-too-low", "majority-class"]),
        ("causal-mask-missing", ["memorising", "decoding-disagrees", "rate-too-high"]),
        ("positions-ignored", ["memorising", "loss-stuck", "kept-by-wrong-metric"]),
        ("clipped-mostly", ["rate-too-low", "constant-predictor"]),
        ("schedule-ends-early", ["rate-too-low", "loss-stuck"]),
        ("inputs-unscaled", ["initial-loss-high", "rate-too-high", "units-dead"]),
        ("classes-skewed", ["constant-predictor", "majority-class"]),
    ],
)
def test_a_cause_stands_above_graver_and_surer_symptoms(cause: str, symptoms: list[str]) -> None:
    found = order(*(finding(kind, "serious", 1.0) for kind in symptoms), finding(cause, "warning", 0.6))
    assert found[0] == (cause, "")
    assert {kind for kind, _ in found[1:]} == set(symptoms)
    assert all(why for _, why in found[1:])


def test_the_first_cause_is_named() -> None:
    found = order(
        finding("majority-class", "serious", 1.0), finding("rate-too-low"), finding("scale-missing")
    )
    assert found == [
        ("scale-missing", ""),
        ("rate-too-low", "scale-missing"),
        ("majority-class", "scale-missing"),
    ]


def test_doubtful_and_harmless_findings_explain_nothing() -> None:
    stuck = finding("loss-stuck", "serious", 0.3)
    assert order(finding("rate-too-high", "warning", 0.4), stuck)[0] == ("loss-stuck", "")
    assert order(finding("norm-missing", "note", 0.9), stuck)[0] == ("loss-stuck", "")


def test_a_cause_of_something_light_keeps_its_place() -> None:
    rows = [finding("memorising"), finding("schedule-ends-early", "warning"), finding("loss-stuck", "note")]
    assert order(*rows) == [
        ("memorising", ""),
        ("schedule-ends-early", ""),
        ("loss-stuck", "schedule-ends-early"),
    ]


def test_a_circle_of_causes_is_put_into_some_order() -> None:
    circle = {"a": ("b",), "b": ("a",)}
    assert [each.kind for each in ranked([finding("a"), finding("b", "warning")], circle)] == ["a", "b"]


def test_what_was_there_from_the_start_is_explained_by_nothing_that_came_later() -> None:
    dead = replace(finding("units-dead", "serious", 0.95), from_start=True)
    assert order(finding("rate-too-high", "serious", 0.8), dead) == [
        ("units-dead", ""),
        ("rate-too-high", ""),
    ]
    later = replace(dead, from_start=False)
    assert order(finding("rate-too-high"), later) == [
        ("rate-too-high", ""),
        ("units-dead", "rate-too-high"),
    ]
    shared = replace(finding("initial-scale"), from_start=True)
    assert order(shared, dead) == [("initial-scale", ""), ("units-dead", "initial-scale")]


@pytest.mark.parametrize(
    ("cause", "symptoms"),
    [
        ("answer-unseen", ["splits-differ", "labels-wrong", "memorising"]),
        ("splits-overlap", ["memorising", "kept-by-wrong-metric"]),
        ("schedule-ends-early", ["labels-wrong"]),
        ("query-key-shared", ["parameters-frozen", "labels-wrong"]),
        ("heads-dead", ["input-ignored", "parameters-frozen"]),
        ("positions-saturated", ["gradients-vanish"]),
        ("initial-loss-high", ["gradients-explode"]),
        ("norm-missing", ["initial-loss-high", "rate-too-high"]),
    ],
)
def test_what_the_study_of_planted_faults_showed(cause: str, symptoms: list[str]) -> None:
    found = order(*(finding(kind, "serious", 0.95) for kind in symptoms), finding(cause, "warning", 0.6))
    assert found[0] == (cause, "")
    assert {kind for kind, _ in found[1:]} == set(symptoms)
    assert all(why for _, why in found[1:])
