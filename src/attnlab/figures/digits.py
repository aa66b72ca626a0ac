"""Which classes of images are taken for which."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import MAP, new_figure, styled


def confusion_data(confusion: list[list[int]], classes: list[str]) -> dict[str, Any]:
    """Percent of each class's images by answer."""
    return {
        "classes": classes,
        "counts": confusion,
        "percent": [[100 * count / max(1, sum(row)) for count in row] for row in confusion],
    }


def draw_confusion(data: dict[str, Any]) -> Figure:
    """A map: a row is the digit that is shown, a column the answer; mistakes carry their number."""
    size = len(data["counts"])
    figure = new_figure(max(6.8, 0.42 * size), max(5.4, 0.36 * size))
    with styled():
        axes = figure.subplots()
        mesh = axes.pcolormesh(
            data["percent"], vmin=0, vmax=100, cmap=MAP, edgecolor="white", linewidth=0.4
        )
        for shown, row in enumerate(data["counts"]):
            for answer, count in enumerate(row):
                if count:
                    dark = data["percent"][shown][answer] < 60
                    axes.text(
                        answer + 0.5,
                        shown + 0.5,
                        f"{count:,}",
                        ha="center",
                        va="center",
                        color="white" if dark else "black",
                        fontsize=8,
                    )
        places = [place + 0.5 for place in range(size)]
        axes.set_xticks(places, data["classes"])
        axes.set_yticks(places, data["classes"])
        axes.invert_yaxis()
        axes.set_aspect("equal")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set(xlabel="answer", ylabel="shown")
        figure.colorbar(mesh, ax=axes, label="% of the digit's images", shrink=0.8)
    return figure
