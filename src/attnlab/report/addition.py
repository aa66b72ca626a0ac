"""The page of a run that adds."""

from collections.abc import Callable
from typing import Any

import torch

from attnlab.analysis import attention_patterns, evaluate, percent
from attnlab.analysis.slips import slips_of
from attnlab.figures import chains_data, draw_chains
from attnlab.models import Seq2Seq, attentions
from attnlab.problems.addition import Addition
from attnlab.report.common import heads_section, training_section
from attnlab.report.figure import Figure, figure
from attnlab.report.page import Section
from attnlab.report.reasons import reasons_section
from attnlab.report.story import Story
from attnlab.report.text import SHOWN, mistakes_section, pattern_figure
from attnlab.runs import Run, load_addition
from attnlab.studies.tables import Table

KINDS = (
    ("encoder", "self", "Encoder self attention", "digits of both operands look at each other"),
    ("decoder", "self", "Decoder self attention", "the answer looks back at what it has said so far"),
    ("decoder", "cross", "Decoder cross attention", "the answer looks at the operands"),
)


def addition_story(run: Run, samples: int) -> Story:
    """What is told of a run that adds."""
    task, model = load_addition(run)
    found = run.analysis("evaluate-test") or evaluate(task, model, seed=run.spec().seed)
    verified = run.analysis("verify")
    pair = _example(task, verified)
    parts: dict[str, Callable[[], Section | None]] = {
        "trained": lambda: training_section(run),
        "good": lambda: _strata(found, verified),
    }
    if attentions(model):
        parts |= {
            "heads": lambda: heads_section(run, samples),
            "maps": lambda: _maps(task, model, pair),
            "reasons": lambda: _reasons(run, task, pair),
        }
    parts["mistakes"] = lambda: _mistakes(run, task, model, verified)
    low, high = task.operand_range
    return Story(
        f"A transformer that adds: two numbers from {low:,} to {high:,}, {_order(task)} first.",
        *proof(found, verified, shipped=run.shipped),
        [(percent(found["exact_match"]), f"of {found['examples']:,} test sums")],
        parts,
    )


def _order(task: Addition) -> str:
    return "ones" if task.order == "least" else "the highest place"


def proof(
    found: dict[str, Any], verified: dict[str, Any] | None, *, shipped: bool
) -> tuple[str, bool, list[str]]:
    """The sentence that proves it, whether all is right, and notes; a shipped run keeps no verification."""
    if verified is None:
        right = f"{percent(found['exact_match'])} of {found['examples']:,} test sums correct"
        offer = "attnlab verify decodes every pair of operands; write this page again after it."
        return f"{right}. Not verified yet.", False, [] if shipped else [offer]
    right, total, unseen = verified["correct"], verified["total"], verified["unseen"]
    told = f"{right:,} of {total:,} sums correct{': every one of them.' if right == total else '.'}"
    note = (
        f"Every ordered pair of operands was decoded greedily. Of the {unseen['total']:,} pairs never seen "
        f"in training, in either order, {unseen['correct']:,} were right."
    )
    return told, right == total, [note]


def _strata(found: dict[str, Any], verified: dict[str, Any] | None) -> Section:
    columns = tuple((row["column"], percent(row["accuracy"])) for row in found["by_column"])
    title = f"Right by column of the sum, {found['examples']:,} test sums, as decoded"
    return Section(
        "good",
        "How good it is",
        figures=[_chains(found, verified)],
        tables=[Table(title, ("column", "right"), columns)],
    )


def _chains(found: dict[str, Any], verified: dict[str, Any] | None) -> Figure:
    rows = found["by_chain"] if verified is None else verified["by_chain"]
    data = chains_data(rows)
    worst = min(range(len(rows)), key=lambda place: data["percent"][place])
    what = f"{found['examples']:,} test sums" if verified is None else f"all {verified['total']:,} sums"
    if data["percent"][worst] == 100:
        here = "every group is wholly right"
    else:
        here = (
            f"the weakest are sums with {data['chain'][worst]} carries in a row, "
            f"{percent(data['percent'][worst] / 100)} right"
        )
    reading = (
        f"Of {what}, by the longest run of columns that each pass on a carry; grey are 95% intervals, n is "
        f"how many sums a group has: from {min(data['examples']):,} to {max(data['examples']):,}."
    )
    signs = (
        "Good: bars of one height, so that carries ripple through however far. Bad: bars that fall to the "
        f"right, which is a model that adds digit by digit and guesses the rest. Here {here}."
    )
    return figure("chains", "By carry chain", data, draw_chains(data), reading=reading, signs=signs)


def _maps(task: Addition, model: Seq2Seq, pair: tuple[int, int]) -> Section:
    everything = attention_patterns(task, model, task.examples(torch.tensor([pair])))
    figures = []
    for stack, kind, title, what in KINDS:
        chosen = [p for p in everything if p.attention.startswith(stack) and p.attention.endswith(kind)]
        if chosen:
            about = f"{pair[0]}+{pair[1]}: {what}."
            skip = int((stack, kind) == ("decoder", "self"))
            figures.append(pattern_figure(f"{stack}-{kind}", title, about, chosen, skip=skip))
    return Section("maps", "Where its heads look in one sum", figures=figures)


def _reasons(run: Run, task: Addition, pair: tuple[int, int]) -> Section | None:
    """Of the example or, where it is none to learn from (0 is none of 10 to 99), of the largest sum."""
    low, high = task.operand_range
    if not all(low <= number <= high for number in pair):
        pair = (high, high)
    return reasons_section(run, f"{pair[0]}+{pair[1]}")


def _mistakes(run: Run, task: Addition, model: Seq2Seq, verified: dict[str, Any] | None) -> Section:
    if verified is None:
        return mistakes_section(slips_of(task, model, task.splits(run.spec().seed).test), "test sums")
    count = verified["total"] - verified["correct"]
    if not count:
        return mistakes_section({"examples": verified["total"], "count": 0, "worst": []}, "sums")
    rows = tuple(
        (f"{row['a']}+{row['b']}", str(row["a"] + row["b"]), row["answer"])
        for row in verified["wrong"][:SHOWN]
    )
    words = [f"{count:,} of all {verified['total']:,} sums are answered wrongly."]
    table = Table(f"{len(rows)} of them", ("sum", "is", "model says"), rows)
    return Section("mistakes", "What it gets wrong", words, tables=[table])


def _example(task: Addition, verified: dict[str, Any] | None) -> tuple[int, int]:
    """A sum that goes wrong if there is one, else one whose carry ripples through all columns."""
    if verified and verified["wrong"]:
        return verified["wrong"][0]["a"], verified["wrong"][0]["b"]
    smaller = 10**task.digits * 3 // 8
    return smaller, 10**task.digits - smaller
