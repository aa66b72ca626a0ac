"""Sections that runs of every task have: how it trained, and its heads."""

from attnlab.analysis import percent, plural
from attnlab.analysis.ablate.ablation import Ablation, AblationResult, ablate_run
from attnlab.analysis.ablate.baselines import head_names
from attnlab.analysis.ablate.effects import ALL, ranked
from attnlab.analysis.heads import SHAPES, HeadsResult, heads_run
from attnlab.analysis.timelapse.runs import Timelapse, lapse_name
from attnlab.figures.ablation import ablation_data, draw_ablation
from attnlab.figures.curves import curves_data, draw_curves
from attnlab.figures.heads import draw_heads, heads_data
from attnlab.figures.timelapse import draw_timelapse, timelapse_data
from attnlab.models import attentions
from attnlab.report.page import Figure, Section, figure
from attnlab.results import Table
from attnlab.runs import Metrics, RunFolder, snapshot_steps

EVEN = 0.95
"""Entropy, as a share of its maximum, from which attention counts as even."""
LITTLE = 0.05
"""Difference of weights below which no head is called far from even attention."""
ABLATED = 500
"""Examples at most on which heads are taken out."""


def training_section(run: RunFolder, *more: Figure | None) -> Section:
    """Loss and accuracy over steps, and what else was watched meanwhile."""
    kept = run.kept(lapse_name(), Timelapse) or run.kept(lapse_name(samples=0), Timelapse)
    snapshots = len(snapshot_steps(run))
    every = (curves_figure(run.metrics()), *more, None if kept is None else _timelapse(kept))
    words = []
    if kept is None and not run.shipped and snapshots > 1 and attentions(run.model):
        words.append(
            f"It kept {snapshots} snapshots on the way; 'attnlab timelapse {run.called}' measures them, "
            "and a page that is written after it shows them too."
        )
    return Section("trained", "How it trained", words, [each for each in every if each is not None])


def _timelapse(found: Timelapse) -> Figure:
    data = timelapse_data(found)
    first, last = found.accuracy[0], found.accuracy[-1]
    reading = (
        f"{len(found.steps)} snapshots from step {found.steps[0]:,} to {found.steps[-1]:,}, on a "
        "logarithmic axis: accuracy and loss, then where heads look, each a line in the colour of its "
        f"attention. Accuracy on validation examples went from {percent(first)} to {percent(last)}."
    )
    signs = (
        "Good: heads take up their jobs where accuracy rises. Bad: accuracy rises and no head moves, so "
        f"that heads are not the reason, or the other way round. Here {found.moment.sentence}."
    )
    return figure("timelapse", "Step by step", data, draw_timelapse, reading, signs)


def curves_figure(metrics: Metrics) -> Figure:
    data = curves_data(metrics)
    epochs = data.epochs
    reading, signs = "No epoch has ended yet.", "Both curves should fall."
    if epochs.epoch:
        exact = epochs.valid_exact_match
        reading = (
            "Blue are training batches, orange is validation; the axis of the loss is logarithmic. "
            f"Validation ended with {percent(exact[-1])} right after {plural(epochs.epoch[-1], 'epoch')} "
            f"and {plural(epochs.step[-1], 'step')}; the best epoch had {percent(max(exact))}."
        )
        signs = (
            "Good: both curves fall together and level off. Bad: training goes on improving while the "
            "validation loss turns up, or nothing falls at all. "
            f"{course_of(epochs.epoch, epochs.valid_loss, epochs.judged)}"
        )
    return figure("curves", "Loss and right answers", data, draw_curves, reading, signs)


def course_of(epochs: list[int], losses: list[float], judged: list[float] | None = None) -> str:
    """Where the validation loss that is drawn is lowest, how far above that it ended, and which weights are
    used: those of the epoch with the lowest loss as trained, ``judged``, which may be of smoothed labels.
    """
    judged = losses if judged is None else judged
    if len(losses) == 1:
        return f"Here only one epoch was trained; its validation loss is {losses[0]:.3g}."
    best, used = (min(range(len(each)), key=each.__getitem__) for each in (losses, judged))
    lowest = f"{losses[best]:.3g} in epoch {epochs[best]}"
    weights = ", whose weights are used"
    if judged != losses:
        weights = (
            f". The weights of epoch {epochs[used]} are used, where the loss with smoothed labels, as "
            f"trained, is lowest ({judged[used]:.3g})"
        )
    if best == len(losses) - 1:
        return f"Here the validation loss is lowest at the end: {lowest}{weights}."
    rise = f", {losses[-1] / losses[best]:.2f} times" if losses[best] > 0 else ", after"
    return f"Here the validation loss ended at {losses[-1]:.3g}{rise} its lowest, {lowest}{weights}."


def heads_section(run: RunFolder, samples: int) -> Section:
    """Where every head looks on many examples, and what is lost without it."""
    found = heads_run(run, count=samples, reuse=True)
    lost = run.kept("ablate-valid", AblationResult)
    if lost is None or not tells_every_head(lost, head_names(run.model)):
        means = Ablation(baselines=("mean",))
        lost = ablate_run(run, means, count=min(samples, ABLATED), keep=False)
    words = (
        f"{len(found.heads)} heads, measured on validation examples. Columns of the table can be sorted."
    )
    title = "What is lost without each head"
    missed = figure("missed", title, ablation_data(lost), draw_ablation, *lost_words(lost))
    return Section("heads", "Its heads", [words], [_heads(found), missed], [_table(found, lost)])


def tells_every_head(lost: AblationResult, heads: list[str]) -> bool:
    """Whether all ``heads`` were taken out, each in favour of a constant."""
    return lost.towards != "resample" and set(lost.singles) >= set(heads)


def _heads(found: HeadsResult) -> Figure:
    data = heads_data(found)
    entropies = {row.head: row.metrics["entropy"].value for row in found.heads}
    sharp, even = min(entropies, key=entropies.__getitem__), max(entropies, key=entropies.__getitem__)
    reading = (
        f"A row is a head, a column a metric, each a mean over {found.examples:,} examples: entropy 1 "
        "is attention spread evenly, the others are the weight on certain keys; in italics, what even "
        f"attention would have. The sharpest head is {sharp} (entropy {entropies[sharp]:.2f}), the most "
        f"even {even} ({entropies[even]:.2f})."
    )
    count = sum(value > EVEN for value in entropies.values())
    signs = (
        "Good: rows that differ from the row in italics and from each other, which are heads with a job. "
        f"Bad: rows that equal it, which choose nothing. Here {count} of {len(entropies)} heads have an "
        f"entropy above {EVEN:g}{furthest(found)}."
    )
    return figure("heads", "Where heads look", data, draw_heads, reading, signs)


def furthest(found: HeadsResult) -> str:
    """The head that is furthest from even attention, above or below, in the weight on a set of keys."""
    cells = [
        (abs(cell.value - cell.uniform), row.head, name, cell)
        for row in found.heads
        for name, cell in row.metrics.items()
        if name not in SHAPES
    ]
    if not cells:
        return ""
    apart, head, name, cell = max(cells, key=lambda each: each[0])
    if apart < LITTLE:
        return f"; no weight on a set of keys differs from that of even attention by {LITTLE:g} or more"
    what = found.metrics[name]
    return (
        f"; furthest from even is {head}: {what} {cell.value:.2f}, "
        f"where even attention has {cell.uniform:.2f}"
    )


def lost_words(found: AblationResult) -> tuple[str, str]:
    """How to read what is lost, and its signs; both count towards the first baseline."""
    rows = found.baselines[found.towards]
    missed = [row for row in rows if row.lost[ALL].surely_above(0.0)]
    most = max(rows, key=lambda row: row.lost[ALL].value)
    other = ", or for resample by its output on another example" if "resample" in found.baselines else ""
    towards = f" (baseline {found.towards})"
    points = 100 * most.lost[ALL].value
    worst = f"Most is lost without {most.head}: {points:.1f} percentage points"
    worst = worst if points > 0 else "Nothing is lost without any single head"
    reading = (
        f"A mark is the exact match lost, of {percent(found.exact_match)} on {found.examples:,} examples, "
        f"when one head's output is replaced by a constant{other}, with its 95% interval over examples. "
        f"{worst}{towards}."
    )
    signs = (
        "Good: few heads cost much, so there is something to explain. Bad: no head costs anything, since "
        "then attention is not used or others stand in for it; an interval across 0 proves nothing. Here "
        f"{len(missed)} of {len(rows)} heads are needed, each by itself: the interval lies above 0"
        f"{towards}."
    )
    return reading, signs


def _table(found: HeadsResult, lost: AblationResult) -> Table:
    names = [name for name in found.metrics if name not in ("entropy_nats", "sparsity")]
    order = {head: place for place, head in enumerate(ranked(lost.singles.values()))}
    rows = []
    for row in sorted(found.heads, key=lambda row: order.get(row.head, len(order))):
        cells = (row.metrics.get(name) for name in names)
        values = ("-" if cell is None else f"{cell.value:.2f}" for cell in cells)
        away = lost.singles.get(row.head)
        rows.append((row.head, "-" if away is None else f"{100 * away.lost[ALL].value:.1f}", *values))
    title = f"Heads: points lost without them ({lost.examples:,} examples), and where they look"
    return Table(title, ("head", "lost", *(name.replace("_", " ") for name in names)), tuple(rows))
