"""What a study finds: tables, Markdown for documents, figures, and a folder small enough to commit:

study.json    every seed's value, means, intervals, differences, and what it was made with
study.md      the same as tables
study.svg     a dot for each seed
heads.svg     heads matched across seeds, where a study matches heads
curves.svg    values over lengths, say, where a study has curves
factors.svg   the mean of each cell and the parts of the variance, where a study crosses two factors
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attnlab.analysis import percent
from attnlab.results import Drawing, Part, Table
from attnlab.storage import make_folder, write_json, write_text
from attnlab.studies.outcome import FILE, HeadsAcrossSeeds, StudyResult
from attnlab.studies.study import MeasureWords


def tables(found: StudyResult) -> Iterator[Part]:
    yield f"{found.study}: {found.question}"
    yield from study_tables(found)
    yield from notes(found)


def figures(found: StudyResult) -> dict[str, Drawing]:
    from attnlab.figures import patching, studies  # here: who only prints tables does not wait for them

    made = {"study": Drawing(studies.seeds_data(found), studies.draw_seeds)}
    if found.heads:
        made["heads"] = Drawing(studies.matched_data(found.heads[0]), patching.draw_grids)
    if found.curves:
        made["curves"] = Drawing(studies.variants_data(found), studies.draw_variants)
    if found.factors:
        made["factors"] = Drawing(studies.factors_data(found), studies.draw_factors)
    return made


def save(found: StudyResult, folder: Path) -> list[Path]:
    """Write numbers, tables and pictures; the files."""
    from attnlab.figures.style import to_svg

    make_folder(folder)
    write_json(folder / FILE, found.to_json())
    text = f"# {found.study}\n\n{found.question}\n\n{markdown(found)}"
    pictures = {f"{name}.svg": to_svg(each.draw(each.data)) for name, each in found.figures().items()}
    for name, content in {"study.md": text, **pictures}.items():
        write_text(folder / name, content)
    return [folder / name for name in (FILE, "study.md", *pictures)]


def study_tables(result: StudyResult) -> list[Table]:
    """Variance by factor, a table a measure, differences from a baseline, matched heads, if any."""
    found = [_measure_table(result, measure) for measure in result.measures]
    if result.differences:
        found.append(_difference_table(result))
    for variant in result.heads or []:
        found += [_roles_table(variant), _matched_table(variant), _distances_table(variant)]
    return [_variance_table(result), *found] if result.factors else found


def notes(result: StudyResult) -> list[str]:
    """What a reader must know beside the tables."""
    seeds, runs = result.seeds, result.runs
    said = []
    if not result.complete:
        said.append(f"Unfinished: {runs.finished} of {runs.wanted} runs.")
    anecdotal = "One seed is anecdotal: it says nothing about another seed."
    said.append(anecdotal if len(seeds) == 1 else "Intervals: 95%, bootstrap over seeds (BCa).")
    if result.differences and len(seeds) > 1:
        said.append(
            "p: exact sign-flip test of the paired differences, Holm-adjusted within a measure; "
            f"with {len(seeds)} seeds it cannot fall below {2 / 2 ** len(seeds):.2g} before adjusting."
        )
    for variant in result.variants:
        said += [f"{variant.name}, seed {row.seed} failed: {row.error}" for row in variant.failed]
    return said


def markdown(result: StudyResult) -> str:
    parts = [f"**{table.title}**\n\n{table.to_markdown()}" for table in study_tables(result)]
    return "\n\n".join([*parts, " ".join(notes(result))]) + "\n"


def show_value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "share":
        return percent(value)
    if unit in ("ratio", "number"):
        return f"{value:.3f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _measure_table(result: StudyResult, measure: MeasureWords) -> Table:
    unit = measure.unit
    seeds = tuple(f"seed {seed}" for seed in result.seeds)
    rows = []
    for variant in result.variants:
        found = variant.measures[measure.name]
        mean = show_value(found.mean, unit) + (" (anecdotal)" if found.anecdotal else "")
        values = tuple(show_value(value, unit) for value in found.values)
        rows.append((variant.name, mean, _interval(found.interval, unit), str(found.n), *values))
    return Table(measure.title, ("variant", "mean", "95% interval", "n", *seeds), tuple(rows))


def _difference_table(result: StudyResult) -> Table:
    rows = tuple(
        (
            f"{row.variant}: {words.title}",
            show_difference(row.mean, words.unit),
            _interval(row.interval, words.unit, show_difference),
            str(row.n),
            "-" if row.p_holm is None else f"{row.p_holm:.3g}",
        )
        for row, words in ((row, result.words(row.measure)) for row in result.differences)
    )
    columns = ("variant: measure", "mean difference", "95% interval", "n", "p (Holm)")
    return Table(f"paired differences from {result.baseline}", columns, rows)


def _variance_table(result: StudyResult) -> Table:
    """How much of the variance two crossed factors explain (omega squared)."""
    factors, rows = result.factors, []
    assert factors is not None
    for row in factors.variance:
        parts = (row.rows, row.columns, row.both, row.seeds)
        shares = (f"{percent(part.share)} ({_interval(part.interval, 'share')})" for part in parts)
        rows.append((result.words(row.measure).title, *shares))
    columns = ("measure", *factors.names, "both", "seeds")
    return Table("share of the variance by part (omega squared)", columns, tuple(rows))


def _roles_table(variant: HeadsAcrossSeeds) -> Table:
    seeds = variant.seeds
    rows = tuple(
        (f"{row.kind}: {row.role}", f"{row.runs} of {len(seeds)}", *map(str, row.heads))
        for row in variant.roles
    )
    title = f"how many heads have a role, {variant.variant}"
    return Table(title, ("role", "seeds with it", *(f"seed {seed}" for seed in seeds)), rows)


def _matched_table(variant: HeadsAcrossSeeds) -> Table:
    """Groups of matched heads, those first that bring most of a carry."""
    seeds, rows = variant.seeds, []
    for kind in variant.kinds:
        groups = sorted(kind.groups, key=lambda group: -max(group.carries.values(), default=0.0))
        for group in groups:
            shared = [role for role, count in group.roles.items() if 2 * count > len(seeds)]
            roles = f"{kind.kind}: {', '.join(shared) or 'no role in most seeds'}"
            lost, carry = next(iter(group.costs.values())), max(group.carries.values(), default=0.0)
            heads = (".".join(head.split(".")[1::2]) for head in group.heads)
            rows.append((roles, percent(lost), percent(carry), f"{group.silhouette:.2f}", *heads))
    columns = ("roles in most seeds", "lost without", "most of a carry", "silhouette")
    title = f"heads (layer.index) matched by what they do, {variant.variant}, means over seeds"
    return Table(title, (*columns, *(f"seed {seed}" for seed in seeds)), tuple(rows))


def _distances_table(variant: HeadsAcrossSeeds) -> Table:
    names = {"matched": "matched heads", "same_name": "heads of the same name", "dealt": "dealt at random"}
    rows = tuple(
        (kind.kind, *(f"{getattr(kind.distance, name):.3f}" for name in names), f"{kind.distance.p:.2g}")
        for kind in variant.kinds
    )
    title = f"mean distance between heads of different seeds, {variant.variant}"
    return Table(title, ("kind", *names.values(), "p"), rows)


def show_difference(value: float | None, unit: str) -> str:
    """A difference with its sign; of shares in percentage points."""
    if value is None:
        return "-"
    if unit == "ratio":
        return f"{value:+.3f}"
    return f"{100 * value:+.2f} points" if unit == "share" else f"{value:+,.1f}"


def _interval(interval: Sequence[float] | None, unit: str, show: Any = show_value) -> str:
    return "-" if interval is None else f"{show(interval[0], unit)} to {show(interval[1], unit)}"
