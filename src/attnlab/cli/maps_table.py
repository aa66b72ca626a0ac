"""The numbers of maps, as a table or as JSON."""

from typing import Any

from attnlab.cli.output import print_json, print_table


def tell_maps(run: str, data: dict[str, Any], files: list[str], *, json: bool) -> None:
    """A row for each map, and the files that were written."""
    maps = [
        {"input": image["input"], **{key: value for key, value in each.items() if key != "weights"}}
        for image in data["images"]
        for row in image["rows"]
        for each in row
    ]
    if json:
        print_json({"run": run, "view": data["view"], "maps": maps, "files": files})
        return
    rows = [_cells(each, data["view"]) for each in maps]
    title = f"{run}: {data['view']}, entropy of each map against its maximum, peak where 1 is uniform"
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])
    if any(each["evenness"] is None for each in maps):
        print("a map of one patch is as even as it is sharp: its entropy is 0 and has no share")
    if maps[0]["on_digit"] is not None:
        even = 1 / data["images"][0]["cells"]
        print(
            f"on digit: what the digit that is being said gets of the map; an even map gives it {even:.0%}"
        )
    print("\n".join(files))


def _cells(each: dict[str, Any], view: str) -> dict[str, str]:
    """Cells by the names of their columns; which there are depends on the view alone."""
    cells = {
        "map": each["map"],
        "image": each["input"],
        "of": each["of"],
        "entropy": f"{each['entropy']:.2f}",
        "at most": f"{each['most_entropy']:.2f}",
        "share": _share(each["evenness"]),
        "peak": f"{each['peak']:.2f}",
        "at patch": "{},{}".format(*each["peak_at"]),
        "in front": _share(each["front"]),
    }
    if view == "received":
        cells["entropy of rows"] = _share(each["entropy_of_rows"])
    if each["on_digit"] is not None:
        cells["on digit"] = _share(each["on_digit"])
    return cells


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.0f}%"
