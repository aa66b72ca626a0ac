"""The answer key of the course: what the solutions give, and what the mistakes of a class would give.

    python benchmarks/course.py                   # some minutes on one core
    python benchmarks/course.py --only lesson2

Writes ``results/course/LESSON.json``, from which the lessons' pages take their tables.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from attnlab.analysis.ablate.effects import ALL
from attnlab.analysis.choices import BaselineName
from attnlab.course.lesson2 import POINT
from attnlab.course.lesson3 import PLACE, SUM
from attnlab.course.lesson4 import FAR
from attnlab.course.lesson5 import leading_zero_share
from attnlab.course.lesson6 import measured_task
from attnlab.course.lessons import LESSONS, check_answers, read_answers
from attnlab.course.measured import (
    ablated,
    accuracy_without,
    explained,
    measured_heads,
    shipped,
    sorted_without,
)
from attnlab.course.patients import SICK, command_of, diagnose_spec, diagnosed, patient_spec
from attnlab.runs import describe_environment
from attnlab.storage import make_folder, write_json

ROOT = Path(__file__).parent.parent
SOLUTIONS = ROOT / "docs/course/solutions"
BASELINES: tuple[BaselineName, ...] = ("mean", "zero", "resample")
LENGTHS = (16, 64, 256)


@dataclass(frozen=True)
class Options:
    """What to do."""

    only: tuple[str, ...] = tuple(LESSONS)
    """Some of the lessons."""
    results: Path = ROOT / "results/course"
    """The folder to write into."""


def answers(lesson: str, *names: str) -> dict[str, Any]:
    """Values that the solutions give."""
    found = read_answers(str(SOLUTIONS / f"{lesson}.py"))
    return {name: found.value(name, object, name) for name in names}


def lesson1() -> dict[str, Any]:
    path = "decoder.0.cross.pattern"
    pattern = shipped("zoo:adder").record("498+198", path)[path][0]
    most = {f"decoder.0.cross.{head}": pattern[head, 0].max().item() for head in range(len(pattern))}
    return {"largest_weight_of_the_first_row": most, **answers("lesson1", "sharpest_head")}


def lesson2() -> dict[str, Any]:
    rows = ablated("zoo:adder").singles
    lost = {name: row.lost[ALL].value for name, row in rows.items()}
    harmless = [name for name in lost if lost[name] < POINT]
    found = answers("lesson2", "partner_head", "most_missed", "harmless", "together", "removed")
    partner = {
        row.head: row.metrics["partner"].value
        for row in measured_heads("zoo:adder").heads
        if "partner" in row.metrics
    }
    most = {}
    for baseline in BASELINES:
        singles = ablated("zoo:adder", baseline).baselines[baseline]
        worst = max(singles, key=lambda row: row.lost[ALL].value)
        most[baseline] = {"head": worst.head, "lost": worst.lost[ALL].value}
    return {
        **found,
        "partner": partner,
        "lost": lost,
        "most_missed_by_baseline": most,
        "added_up": sum(lost[name] for name in harmless),
        "heads": len(rows),
        "right_without_removed": accuracy_without("zoo:adder", frozenset(found["removed"])),
    }


def lesson3() -> dict[str, Any]:
    parts, scores = explained("zoo:adder", SUM, PLACE)
    return {
        "sum": SUM,
        "place": PLACE,
        "parts": parts,
        "scores": scores,
        **answers("lesson3", "attention_top", "occlusion_top"),
    }


def lesson4() -> dict[str, Any]:
    found = answers("lesson4", "next_head", "without_it")
    weights = {row.head: row.metrics["next"].value for row in measured_heads("zoo:sorter").heads}
    accuracy = {
        str(length): {
            "with": sorted_without(length, ""),
            "without": sorted_without(length, found["next_head"]),
        }
        for length in LENGTHS
    }
    return {**found, "length": FAR, "next": weights, "accuracy": accuracy}


def lesson5() -> dict[str, Any]:
    found = answers("lesson5", "kinds", "cures", "leading_zero")
    patients = {}
    for name in SICK:
        sick, cured = diagnosed(name), diagnose_spec(patient_spec(name, **found["cures"][name]))
        patients[name] = {
            "command": command_of(name),
            "kinds": list(sick.kinds),
            "accuracy": sick.accuracy,
            "cure": found["cures"][name],
            "cured_accuracy": cured.accuracy,
            "cured_kinds": list(cured.kinds),
        }
    return {
        "patients": patients,
        "leading_zero": found["leading_zero"],
        "leading_zero_from_0": leading_zero_share(0),
    }


def lesson6() -> dict[str, Any]:
    return measured_task(read_answers(str(SOLUTIONS / "lesson6.py")))


MEASURES: dict[str, Callable[[], dict[str, Any]]] = {
    "lesson1": lesson1,
    "lesson2": lesson2,
    "lesson3": lesson3,
    "lesson4": lesson4,
    "lesson5": lesson5,
    "lesson6": lesson6,
}


def main(options: Options) -> None:
    make_folder(options.results)
    for lesson in options.only:
        began = time.process_time()
        checked = check_answers(lesson, str(SOLUTIONS / f"{lesson}.py"))
        seconds = time.process_time() - began
        found = {
            "command": "python benchmarks/course.py",
            "environment": describe_environment().to_json(),
            "lesson": lesson,
            "passed": checked.passed,
            "exercises": checked.exercises,
            "processor_seconds_of_the_check": seconds,
            **MEASURES[lesson](),
            "steps": steps_of(lesson),
        }
        write_json(options.results / f"{lesson}.json", found)
        print(options.results / f"{lesson}.json")


def steps_of(lesson: str) -> list[dict[str, Any]]:
    """What the model says in each state of the explorer's hand-out."""
    import sys

    sys.path.insert(0, str(ROOT / "docs"))
    from course_steps import STEPS

    return [
        {"do": step.do, "fragment": step.fragment, **said_in(step.state)} for step in STEPS.get(lesson, ())
    ]


def said_in(state: dict[str, str]) -> dict[str, Any]:
    """The answer before and after the edits of a state."""
    from attnlab.explorer.page_state import PageState

    run, edits = shipped(state["run"]), PageState(state).edits()
    before, other = run.predict(state["text"]).text, state.get("other-text")
    found: dict[str, Any] = {"answer": before}
    if other:
        found["other_answer"] = run.predict(other).text
    if edits:
        with run.changed(*edits, other=other):
            found["edited_answer"] = run.predict(state["text"]).text
    return found


if __name__ == "__main__":
    main(tyro.cli(Options))
