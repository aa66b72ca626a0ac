"""What ``verify`` finds: how many sums are right, the first that are not, and shares by carry chain."""

from collections.abc import Iterator

from attnlab.analysis.statistics import percent
from attnlab.problems.addition.evaluate import Verification
from attnlab.problems.addition.figures import chains_data, draw_chains
from attnlab.problems.addition.task import WRONG
from attnlab.results import Drawing, Part, Table

SHOWN = 20


def tables(found: Verification) -> Iterator[Part]:
    unseen, missed = found.unseen, found.total - found.correct
    yield f"{found.run}: {found.correct:,} of {found.total:,} correct, decoded in {found.seconds:.0f} s"
    yield (
        f"of these never seen in training: {unseen.correct:,} of {unseen.total:,} "
        f"({percent(unseen.correct / max(1, unseen.total))})"
    )
    if missed:
        rows = tuple((f"{each.a}+{each.b}", str(each.a + each.b), each.answer) for each in found.wrong)
        yield Table("wrong", ("sum", "is", "model says"), rows[:SHOWN])
    if missed > SHOWN:
        kept = "" if found.run.startswith("zoo:") else f"; the run folder keeps all of them in {WRONG}"
        yield f"and {missed - SHOWN:,} more{kept}"


def figures(found: Verification) -> dict[str, Drawing]:
    return {"chains": Drawing(chains_data(found.by_chain), draw_chains)}
