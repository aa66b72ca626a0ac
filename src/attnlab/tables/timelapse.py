"""What ``timelapse`` finds: a row a snapshot, what changed most in a sudden moment, and the moment."""

from collections.abc import Iterator
from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.statistics import two_places
from attnlab.analysis.timelapse.runs import Timelapse
from attnlab.figures.timelapse import draw_timelapse, timelapse_data
from attnlab.results import Drawing, Part, Table


def tables(found: Timelapse) -> Iterator[Part]:
    columns = {"step": "step", "right": "correct", "loss": "loss", "entropy": "mean entropy"}
    columns |= {"moved": "positions moved"} if found.positions else {}
    columns |= {"silhouette": f"silhouette, {found.projection.tap}"} if found.projection else {}
    rows = frame_rows(found)
    yield Table(
        f"{found.run}: {len(rows)} snapshots, {found.valid:,} validation examples",
        tuple(columns.values()),
        tuple(tuple(f"{row[key]:,}" if key == "step" else row[key] for key in columns) for row in rows),
    )
    if found.changed:
        first = found.changed[0]
        yield Table(
            f"changed most from step {first.from_step:,} to {first.to_step:,}",
            ("head", "what", "before", "after"),
            tuple(
                (row.head, found.metrics[row.metric], f"{row.before:.3f}", f"{row.after:.3f}")
                for row in found.changed
            ),
        )
    yield found.moment.sentence


def figures(found: Timelapse) -> dict[str, Drawing]:
    return {"timelapse": Drawing(timelapse_data(found), draw_timelapse)}


def frame_rows(found: Timelapse) -> list[dict[str, Any]]:
    """A row of words for each snapshot; its step is a number."""
    entropy = [head.metrics["entropy"] for head in found.heads if "entropy" in head.metrics]
    moved, projection = found.positions, found.projection
    return [
        {
            "step": step,
            "right": percent(found.accuracy[place]),
            "loss": f"{found.loss[place]:.4f}",
            "entropy": f"{_mean([values[place] for values in entropy]):.3f}",
            "moved": f"{_mean([table.mean[place] for table in moved]):.3f}" if moved else "",
            "silhouette": two_places(projection.silhouette[place]) if projection else "",
        }
        for place, step in enumerate(found.steps)
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))
