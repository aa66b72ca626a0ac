"""What only the page of a run that adds has: sums by carry chain, and what ``verify`` found."""

from dataclasses import replace

import torch

from attnlab.analysis.evaluate import Mistakes
from attnlab.analysis.statistics import percent
from attnlab.problems.addition.evaluate import AdditionEvaluation, Verification
from attnlab.problems.addition.figures import chains_data, draw_chains, draw_lengths, lengths_data
from attnlab.problems.addition.lengths import AdditionLengths
from attnlab.problems.addition.task import Addition
from attnlab.report.page import Figure, Part, Section, Story, figure
from attnlab.report.reasons import reasons_section
from attnlab.report.task import SHOWN, mistakes_section
from attnlab.results import Table
from attnlab.runs import RunFolder


def addition_story(task: Addition, run: RunFolder, story: Story) -> Story:
    """``story``, told of sums."""
    found, verified = story.evaluation, run.kept("verify", Verification)
    assert isinstance(found, AdditionEvaluation)
    (low, high), (a, b) = task.operand_range, _example(task, verified)
    lengths = run.kept("lengths", AdditionLengths) if task.shortest else None
    parts: dict[str, Part] = {"good": lambda: _strata(found, verified, lengths)}
    parts |= story.one(task.examples(torch.tensor([[a, b]])))
    if "reasons" in parts and not (low <= a <= high and low <= b <= high):
        parts["reasons"] = lambda: reasons_section(run, f"{high}+{high}")
    if verified is not None:
        parts["mistakes"] = lambda: _mistakes(verified)
    told, good, notes = proof(found, verified, shipped=run.shipped)
    if task.shortest:
        told, good, notes = proof_by_length(found, lengths, shipped=run.shipped)
    first = "ones" if task.order == "least" else "the highest place"
    sizes = f"of {task.shortest} to {task.digits} digits" if task.shortest else f"from {low:,} to {high:,}"
    return replace(
        story.with_parts(parts),
        what=f"A transformer that adds: two numbers {sizes}, {first} first.",
        proof=told,
        good=good,
        notes=notes,
        cards=[(percent(found.exact_match), f"of {found.examples:,} test sums")],
    )


def proof(
    found: AdditionEvaluation, verified: Verification | None, *, shipped: bool
) -> tuple[str, bool, list[str]]:
    """The sentence that proves it, whether all is right, and notes; a shipped run keeps no verification."""
    if verified is None:
        right = f"{percent(found.exact_match)} of {found.examples:,} test sums correct"
        offer = "attnlab verify decodes every pair of operands; write this page again after it."
        return f"{right}. Not verified yet.", False, [] if shipped else [offer]
    correct, total = verified.correct, verified.total
    told = f"{correct:,} of {total:,} sums correct{': every one of them.' if correct == total else '.'}"
    note = (
        f"Every ordered pair of operands was decoded greedily. Of the {verified.unseen.total:,} pairs "
        f"never seen in training, in either order, {verified.unseen.correct:,} were right."
    )
    return told, correct == total, [note]


def proof_by_length(
    found: AdditionEvaluation, lengths: AdditionLengths | None, *, shipped: bool
) -> tuple[str, bool, list[str]]:
    """The same of a run that adds numbers of several lengths."""
    told = f"{percent(found.exact_match)} of {found.examples:,} test sums correct"
    if lengths is None:
        offer = (
            "attnlab lengths measures lengths that were never learned from; write this page again after it."
        )
        return f"{told}.", found.exact_match == 1, [] if shipped else [offer]
    longest = max(row.length for row in lengths.rows)
    far = [row for row in lengths.rows if row.length == longest]
    each = " and ".join(f"{percent(row.exact_match)} of {row.examples:,} {row.sums}" for row in far)
    good = all(row.exact_match == 1 for row in lengths.rows)
    return f"{told}; at {longest} digits {each} sums.", good, []


def _strata(
    found: AdditionEvaluation, verified: Verification | None, lengths: AdditionLengths | None
) -> Section:
    columns = tuple((row.column, percent(row.accuracy)) for row in found.by_column)
    title = f"Right by column of the sum, {found.examples:,} test sums, as decoded"
    return Section(
        "good",
        "How good it is",
        figures=[_chains(found, verified), *([] if lengths is None else [_lengths(lengths)])],
        tables=[Table(title, ("column", "right"), columns)],
    )


def _chains(found: AdditionEvaluation, verified: Verification | None) -> Figure:
    rows = found.by_chain if verified is None else verified.by_chain
    worst = min(rows, key=lambda row: row.exact_match)
    what = f"{found.examples:,} test sums" if verified is None else f"all {verified.total:,} sums"
    if worst.exact_match == 1:
        here = "every group is correct"
    else:
        here = (
            f"the weakest are sums with {worst.chain} carries in a row, {percent(worst.exact_match)} right"
        )
    counts = [row.examples for row in rows]
    reading = (
        f"Of {what}, by the longest run of columns that each pass on a carry; grey are 95% intervals, n is "
        f"how many sums a group has: from {min(counts):,} to {max(counts):,}."
    )
    signs = (
        "Good: bars of one height, so that carries ripple through however far. Bad: bars that fall to the "
        f"right, which is a model that adds digit by digit and guesses the rest. Here {here}."
    )
    data = chains_data(rows)
    return figure("chains", "By carry chain", data, draw_chains, reading, signs)


def _lengths(found: AdditionLengths) -> Figure:
    low, high = found.trained
    worst = min(found.rows, key=lambda row: row.exact_match)
    longest = max(row.length for row in found.rows)
    reading = (
        f"Right sums over the digits of an operand, up to {longest}; the shaded lengths, {low} to {high}, "
        "were learned from. In full-carry sums every column sends a carry, in uniform ones few do."
    )
    here = (
        "every sum that was tried is right"
        if worst.exact_match == 1
        else f"{worst.sums} sums of {worst.length} digits are weakest, {percent(worst.exact_match)} right"
    )
    signs = (
        "Good: lines that stay high far to the right of the shade. Bad: a fall right behind it, which is a "
        f"model that has learned places by heart. Here {here}."
    )
    return figure("lengths", "By length", lengths_data(found), draw_lengths, reading, signs)


def _mistakes(verified: Verification) -> Section:
    count = verified.total - verified.correct
    if not count:
        return mistakes_section(Mistakes(verified.total, 0, []), "sums")
    rows = tuple((f"{row.a}+{row.b}", str(row.a + row.b), row.answer) for row in verified.wrong[:SHOWN])
    words = [f"{count:,} of all {verified.total:,} sums are answered wrongly."]
    table = Table(f"{len(rows)} of them", ("sum", "is", "model says"), rows)
    return Section("mistakes", "What it gets wrong", words, tables=[table])


def _example(task: Addition, verified: Verification | None) -> tuple[int, int]:
    """A sum that goes wrong if there is one, else one whose carry ripples through all columns."""
    if verified and verified.wrong:
        return verified.wrong[0].a, verified.wrong[0].b
    smaller = 10**task.digits * 3 // 8
    return smaller, 10**task.digits - smaller
