"""What ``evaluate`` finds of a model that is given tokens, and what its task adds."""

from collections.abc import Iterator

from attnlab.analysis.evaluate import Evaluation, Stratum
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.figures.strata import draw_strata, strata_data
from attnlab.results import Drawing, Part, Table


def tables(found: Evaluation) -> Iterator[Part]:
    forced, noun = found.teacher_forced, found.noun
    yield Table(
        f"{found.run}: {found.examples:,} {found.split} {noun}s",
        ("", "greedy decoding", "teacher forcing"),
        (
            ("exact match", percent(found.exact_match), percent(forced.exact_match)),
            ("95% interval", percent_ends(found.exact_match_interval), ""),
            ("token accuracy", percent(found.token_accuracy), percent(forced.token_accuracy)),
            ("loss", "", f"{forced.loss:.5f}"),
        ),
    )
    groups = [
        (row.stratum, f"{row.examples:,}", percent(row.exact_match), percent_ends(row.exact_match_interval))
        for row in found.by_stratum
    ]
    if groups:
        yield Table("by group", ("group", f"{noun}s", "exact match", "95% interval"), tuple(groups))
    if len(found.by_place) > 1:
        places = [(row.place, percent(row.accuracy)) for row in found.by_place]
        yield Table("by place of the answer", ("place", "accuracy"), tuple(places))
    yield from found.remarks()


def figures(found: Evaluation) -> dict[str, Drawing]:
    """Groups of examples, or all together where there are none."""
    whole = Stratum("all", found.examples, found.exact_match, found.exact_match_interval)
    data = strata_data(found.by_stratum or [whole], whole=found.exact_match, what=f"{found.noun}s")
    return {"evaluation": Drawing(data, draw_strata)}
