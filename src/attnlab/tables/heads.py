"""What ``heads`` finds: tables for each kind of attention, and who looks where most."""

from collections.abc import Iterator

from attnlab.analysis import plural
from attnlab.analysis.heads import HeadsResult, Metric, strongest, weights_of
from attnlab.figures.heads import draw_heads, heads_data
from attnlab.results import Drawing, Part, Table

IN_NATS = "entropy_nats"  # in JSON only, since every other number goes from 0 to 1


def tables(found: HeadsResult) -> Iterator[Part]:
    whose = f"{found.run}, " if found.run else ""
    split = found.split or ""
    spread = ", ± half of the 95% interval" if found.examples > 1 else ""
    for kind, rows in found.kinds.items():
        names = [name for name in found.metrics if name != IN_NATS and name in rows[0].metrics]
        yield Table(
            f"{whose}{kind}: {plural(found.examples, f'{split} example'.strip())}{spread}",
            ("", *(name.replace("_", " ") for name in names)),
            (
                ("uniform", *(_value(rows[0].metrics[name].uniform, "") for name in names)),
                *((row.head, *(_cell(row.metrics[name]) for name in names)) for row in rows),
            ),
        )
    best = [
        (row.metric.replace("_", " "), row.head, f"{row.weight.value:.3f}", f"{row.weight.uniform:.3f}")
        for row in strongest(found)
    ]
    yield Table("most weight", ("on", "head", "weight", "uniform"), tuple(best))


def figures(found: HeadsResult) -> dict[str, Drawing]:
    return {"heads": Drawing(heads_data(found), draw_heads)}


def by_place(found: HeadsResult) -> Iterator[Table]:
    """The weights of decoder heads by the place of the answer."""
    for name in weights_of(found):
        cells = [(row.head, row.metrics[name].by_place) for row in found.heads if name in row.metrics]
        known = [(head, weights) for head, weights in cells if weights]
        places = [place for place in found.places if any(place in weights for _, weights in known)]
        if known:
            yield Table(
                f"{name.replace('_', ' ')}, by the place of the answer",
                ("", *places),
                tuple(
                    (head, *(f"{weights[place]:.3f}" if place in weights else "" for place in places))
                    for head, weights in known
                ),
            )


def _cell(cell: Metric) -> str:
    if cell.interval is None:
        return _value(cell.value, "")
    low, high = cell.interval
    return _value(cell.value, f"±{(high - low) / 2:.3f}".replace("±0.", "±."))


def _value(value: float, half: str) -> str:
    return f"{value:.3f} {half:<5}"
