"""What the course shows: the answer keys of its lessons, from ``results/course``."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from course_handouts import file_of
from course_steps import STEPS
from head_tables import adder_heads, read

from attnlab.analysis import percent
from attnlab.course.lessons import LESSONS

SHOWN = {
    "lesson1": "`zoo:adder`",
    "lesson2": "`zoo:adder`",
    "lesson3": "`zoo:adder`",
    "lesson4": "`zoo:sorter`",
    "lesson5": "three sick trainings",
    "lesson6": "a task of one's own",
}
"""What each lesson works with."""


def key(lesson: str) -> dict[str, Any]:
    """What ``benchmarks/course.py`` found."""
    return read(f"course/{lesson}.json")


def rows(columns: tuple[str, ...], *cells: tuple[str, ...]) -> str:
    return "\n".join(f"| {' | '.join(each)} |" for each in (columns, ("---",) * len(columns), *cells))


def source(lesson: str) -> str:
    found = key(lesson)
    return f"\n\n`{found['command']}`, {found['environment']['processor']}"


def lessons_table() -> str:
    """All lessons, with what their check takes."""
    found = {lesson: key(lesson) for lesson in LESSONS}
    cells = (
        (
            f"[{number}. {title[0].upper()}{title[1:]}]({lesson}.md)",
            SHOWN[lesson],
            str(found[lesson]["exercises"]),
            f"{found[lesson]['processor_seconds_of_the_check']:.1f} s",
        )
        for number, (lesson, title) in enumerate(LESSONS.items(), 1)
    )
    table = rows(("lesson", "works with", "exercises", "processor time of the check"), *cells)
    note = "Of the solutions, most of which also compute what they answer; one thread."
    return f"{table}\n\n{note}{source('lesson1')}"


def steps_table(lesson: str) -> str:
    """The steps of the explorer's hand-out, with what the model says in each."""
    cells = []
    for number, (step, found) in enumerate(zip(STEPS[lesson], key(lesson)["steps"], strict=True), 1):
        link = f"`{file_of(step.run)}{step.fragment}`"
        cells.append((str(number), f"**{step.do}.** {step.look}", said(found), link))
    return rows(("", "do and look", "the model says", "address"), *cells) + source(lesson)


def said(step: Mapping[str, Any]) -> str:
    told = step["answer"]
    if "other_answer" in step:
        told = f"A: {told}, B: {step['other_answer']}"
    return f"{told}; edited: {step['edited_answer']}" if "edited_answer" in step else told


def first_row_table() -> str:
    """The largest weight of each head in the row that writes the ones."""
    found = key("lesson1")["largest_weight_of_the_first_row"]
    cells = ((f"`{name}`", f"{value:.3f}") for name, value in found.items())
    return rows(("head", "largest weight in the row ⊢ of 498+198"), *cells) + source("lesson1")


def heads_table() -> str:
    """The key of lesson 2."""
    found = key("lesson2")
    lost, partner = found["lost"], found["partner"]
    top = sorted(lost, key=lambda name: -lost[name])[:4]
    pairs = sorted(partner, key=lambda name: -partner[name])[:2]
    most = found["most_missed_by_baseline"]
    rows_of = {row.head: row.metrics["sparsity"].value for row in adder_heads().heads}
    sharpest = sorted(rows_of, key=lambda name: -rows_of[name])[:4]
    sharp = [f"`{name}`, sparsity {rows_of[name]:.2f}, {percent(lost[name])} lost" for name in sharpest]
    wrong = "; ".join(f"{name}: `{row['head']}`, {percent(row['lost'])}" for name, row in most.items())
    cells = (
        ("partner_head", f"`{found['partner_head']}`", ", ".join(f"`{n}` {partner[n]:.2f}" for n in pairs)),
        ("most_missed", f"`{found['most_missed']}`", ", ".join(f"`{n}` {percent(lost[n])}" for n in top)),
        ("most missed by baseline", "", wrong),
        ("harmless", f"{len(found['harmless'])} of {found['heads']} heads", "less than one point each"),
        ("the sharpest heads", "", "; ".join(sharp)),
        (
            "together",
            percent(found["together"]),
            f"who adds up what each costs expects {percent(1 - found['added_up'])}",
        ),
        (
            "removed",
            ", ".join(f"`{name}`" for name in found["removed"]),
            f"{percent(found['right_without_removed'])} stay right",
        ),
    )
    return rows(("exercise", "answer", "beside it"), *cells) + source("lesson2")


def explained_parts_table() -> str:
    """The scores of three methods for each part of the sum of lesson 3."""
    found = key("lesson3")
    methods = ("attention", "rollout", "occlusion", "integrated gradients")
    cells = (
        (str(at), part, *(f"{found['scores'][method][at]:.3f}" for method in methods))
        for at, part in enumerate(found["parts"])
    )
    table = rows(("position", "part", *methods), *cells)
    top = f"attention_top is {found['attention_top']}, occlusion_top is {found['occlusion_top']}."
    return f"{table}\n\n{top}{source('lesson3')}"


def lengths_table() -> str:
    """The head that compares neighbours, and lists of several lengths without it."""
    found = key("lesson4")
    weights = ", ".join(f"`{name}` {value:.2f}" for name, value in found["next"].items())
    cells = (
        (length, percent(row["with"]), percent(row["without"])) for length, row in found["accuracy"].items()
    )
    table = rows(("numbers in the list", "all heads", f"without `{found['next_head']}`"), *cells)
    above = f"Weight on the next number: {weights}. One exchanged pair of neighbours:"
    return f"{above}\n\n{table}{source('lesson4')}"


def patients_commands() -> str:
    """The commands that train the patients."""
    commands = "\n".join(each["command"] for each in key("lesson5")["patients"].values())
    return f"```\n{commands}\n```"


def patients_table() -> str:
    """What the doctor finds in each patient, and what its cure does."""
    found = key("lesson5")
    cells = (
        (
            name,
            ", ".join(f"`{kind}`" for kind in each["kinds"]),
            percent(each["accuracy"]),
            ", ".join(f"`{setting}` {value}" for setting, value in each["cure"].items()),
            percent(each["cured_accuracy"]),
        )
        for name, each in found["patients"].items()
    )
    table = rows(("patient", "findings, first to last", "right", "cure", "right then"), *cells)
    zero = (
        f"leading_zero is {found['leading_zero']:.4f}; operands from 0 give "
        f"{found['leading_zero_from_0']:.4f}."
    )
    return f"{table}\n\n{zero}{source('lesson5')}"


def own_task_table() -> str:
    """What the exercises measure of the solution's task."""
    found = key("lesson6")
    lost = sorted(found["lost"].items(), key=lambda each: -each[1])
    cells = (
        ("the most frequent answer gets", percent(found["best_guess"])),
        ("the trained model gets", percent(found["accuracy"])),
        ("without any head, means in their place", percent(found["without_heads"])),
        *((f"lost without `{name}`", percent(value)) for name, value in lost),
    )
    return rows((f"`{found['task']}` of the solution", ""), *cells) + source("lesson6")


TABLES: dict[str, Callable[[], str]] = {
    "course-lessons": lessons_table,
    "course-first-row": first_row_table,
    "course-heads": heads_table,
    "course-parts": explained_parts_table,
    "course-lengths": lengths_table,
    "course-patients-commands": patients_commands,
    "course-patients": patients_table,
    "course-own-task": own_task_table,
    **{
        f"course-steps-{lesson}": partial(steps_table, lesson)
        for lesson in ("lesson1", "lesson2", "lesson3", "lesson4")
    },
}
