"""Maps of attention over images: their numbers, and the figure."""

from collections.abc import Iterator

from attnlab.analysis.image_maps import ImageMap, Maps
from attnlab.figures import maps as of
from attnlab.results import Drawing, Part, Table


def tables(found: Maps) -> Iterator[Part]:
    """A row for each map."""
    rows = [_cells(each, found.view) for each in found.maps]
    title = f"{found.run}: {found.view}, entropy of each map against its maximum, peak where 1 is uniform"
    yield Table(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
    if any(each.evenness is None for each in found.maps):
        yield "a map of one patch is as even as it is sharp: its entropy is 0 and has no share"
    if found.maps[0].on_digit is not None:
        sample, _ = found.drawn[0] if found.drawn else (None, None)
        even = f"; an even map gives it {1 / len(sample.answer):.0%}" if sample is not None else ""
        yield f"on digit: what the digit that is being said gets of the map{even}"


def figures(found: Maps) -> dict[str, Drawing]:
    """The maps beside their images; none of a result that was read from a file, which has only numbers."""
    if not found.drawn:
        return {}
    return {"maps": Drawing(of.maps_data(found.view, found.drawn, scale=found.scale), of.draw_maps)}


def _cells(each: ImageMap, view: str) -> dict[str, str]:
    """Cells by the names of their columns; which there are depends on the view alone."""
    cells = {
        "map": each.map,
        "image": each.input,
        "of": each.of,
        "entropy": f"{each.entropy:.2f}",
        "at most": f"{each.most_entropy:.2f}",
        "share": _share(each.evenness),
        "peak": f"{each.peak:.2f}",
        "at patch": "{},{}".format(*each.peak_at),
        "in front": _share(each.front),
    }
    if view == "received":
        cells["entropy of rows"] = _share(each.entropy_of_rows)
    if each.on_digit is not None:
        cells["on digit"] = _share(each.on_digit)
    return cells


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.0f}%"
