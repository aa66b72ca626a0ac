"""Which parts of an input an answer is attributed to, by several methods, and their judgement."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from attnlab.analysis.explain.curves import CONTROLS, MODES
from attnlab.analysis.explain.methods import METHODS, strongest_heads
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.explain.runs import wrong_words
from attnlab.analysis.explain.verdict import AGREE
from attnlab.figures.parts import draw_estimates, heat_map
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, SIGNED, new_figure, styled
from attnlab.models.images import patch_grid
from attnlab.results import Result

LOOKS = dict(zip(METHODS, (*MARKED[:5], ("#111111", "P")), strict=True))
"""A colour and a form for each method; grey is chance."""
_SAID = 24  # parts up to which each carries its number
_WIDE, _TALL = 13.0, 3.4  # inches of the figure, and of the judgement below
_BARS = 0.42  # width of the bars of heads, where the table beside them has 1
_LOST = "evidence lost\nwithout a head"
_MODES = {"deletion": (BLUE, "o", -0.15), "insertion": (ORANGE, "s", 0.15)}  # colour, form and offset
_APART = 0.3  # columns between agreement and the check of weights


@dataclass(frozen=True, kw_only=True)
class PlaceMaps:
    """What is drawn of one place: scores of each method divided by its largest size, strongest heads."""

    place: str
    answer: str
    truth: str | None
    probability: float
    maps: dict[str, list[float]]
    heads: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ExplainedFigure(Result):
    """``grid`` are rows and columns of patches; ranks and curves are means over the places."""

    input: str
    output: str
    truth: str | None
    methods: list[str]
    parts: list[str]
    image: list[list[Any]] | None
    grid: tuple[int, int] | None
    places: list[PlaceMaps]
    agreement: list[list[float]]
    shuffled: list[float]
    shares: list[float]
    curves: dict[str, dict[str, dict[str, list[float]]]]


def explain_data(found: Explanation) -> ExplainedFigure:
    """What is drawn of an explanation."""
    image, places = found.image, found.places
    return ExplainedFigure(
        input=found.input,
        output=found.output,
        truth=found.truth,
        methods=found.methods,
        parts=found.parts,
        image=image,
        grid=None if image is None else patch_grid((len(image), len(image[0])), len(found.parts)),
        places=[
            PlaceMaps(
                place=each.place,
                answer=each.answer,
                truth=each.truth,
                probability=each.probability,
                maps={name: _scaled(scores) for name, scores in each.scores.items()},
                heads=strongest_heads(each.heads),
            )
            for each in places
        ],
        agreement=[
            [fmean(each.agreement[a][b].value for each in places) for b in found.methods]
            for a in found.methods
        ],
        shuffled=[fmean(each.shuffled[name].value for each in places) for name in found.methods],
        shares=places[0].shares,
        curves={
            replacement: {
                mode: {
                    name: _means([each.curves[replacement][mode][name] for each in places])
                    for name in places[0].curves[replacement][mode]
                }
                for mode in MODES
            }
            for replacement in found.replacements
        },
    )


def _scaled(scores: list[float]) -> list[float]:
    most = max(map(abs, scores))
    return [each / most if most else 0.0 for each in scores]


def _means(lists: list[list[float]]) -> list[float]:
    return [fmean(each) for each in zip(*lists, strict=True)]


@styled()
def draw_explain(data: ExplainedFigure) -> Figure:
    """Above, what each method says; below, how far they agree, and curves against chance."""
    above = _height(data)
    figure = new_figure(_WIDE, above + _TALL + 0.3)
    whole, wrong = data.input, wrong_words(data.output, data.truth)
    short = whole if len(whole) <= 90 else f"{whole[:45]} ... {whole[-45:]}"
    figure.suptitle(f"{short} → {data.output}{wrong}", fontsize=10)
    halves: Any = figure.subfigures(2, 1, height_ratios=(above, _TALL))
    top, bottom = halves
    if data.image is None:
        _draw_tokens(top, data)
    else:
        _draw_images(top, data)
    left, right = bottom.subfigures(1, 2, width_ratios=(1, 1.9))
    draw_agreement(left, data.methods, data.agreement, data.shuffled)
    _draw_curves(right, data)
    return figure


def _height(data: ExplainedFigure) -> float:
    """Inches of the maps."""
    if data.image is not None:
        tall = len(data.image) / len(data.image[0])
        return len(data.places) * (1.5 * tall + 0.15) + 0.6
    return -(-len(data.places) // _across(data)) * 2.1 + 0.1


def _across(data: ExplainedFigure) -> int:
    """Tables of tokens side by side."""
    return 2 if len(data.places) > 1 and len(data.parts) <= _SAID // 2 else 1


def _draw_images(figure: SubFigure, data: ExplainedFigure) -> None:
    """A row a place: the image, a map a method with the ink's outline on it, then the effects of heads."""
    assert data.grid is not None
    assert data.image is not None
    rows, columns = data.grid
    high, wide = len(data.image), len(data.image[0])
    outline = np.asarray(data.image).reshape(high, wide, -1).mean(axis=2)
    frame = (-0.5, wide - 0.5, high - 0.5, -0.5)
    widths = [*[1.0] * (1 + len(data.methods)), 1.1]
    axes = figure.subplots(len(data.places), len(widths), squeeze=False, width_ratios=widths)
    for row, place in zip(axes[:, :-1], data.places, strict=True):
        row[0].imshow(data.image, cmap="gray_r", vmin=0, vmax=1)  # a picture in colour keeps its colours
        row[0].set_title(_said(place), fontsize=8)
        for each, name in zip(row[1:], data.methods, strict=True):
            scores = place.maps[name]
            grid = [scores[start : start + columns] for start in range(0, rows * columns, columns)]
            mesh = each.imshow(grid, cmap=SIGNED, vmin=-1, vmax=1, extent=frame)
            each.contour(outline, levels=[0.5], colors="black", linewidths=0.7)
            if place is data.places[0]:
                lines = name.replace("gradient x ", "gradient x\n").replace("integrated ", "integrated\n")
                each.set_title(lines, fontsize=8)
        for each in row:
            each.set(xticks=[], yticks=[])
            each.spines[:].set_visible(True)
    for each, place in zip(axes[:, -1], data.places, strict=True):
        draw_effects(each, place.heads, title=_LOST if place is data.places[0] else "")
    figure.colorbar(mesh, ax=axes[:, :-1], shrink=0.8, aspect=18, label="score / its largest size")


def _draw_tokens(figure: SubFigure, data: ExplainedFigure) -> None:
    """A table a place: a row a method, a column a token; beside it the effects of heads."""
    across, count, size = _across(data), len(data.places), len(data.parts)
    widths = (1.0, _BARS if across > 1 else _BARS / 2) * across
    axes = figure.subplots(-(-count // across), len(widths), squeeze=False, width_ratios=widths)
    for each in axes.flat[2 * count :]:
        each.axis("off")
    for beside, place in zip(axes.flat[1::2], data.places, strict=False):
        draw_effects(beside, place.heads, title=_LOST)
    step = -(-size // 64)
    for each, place in zip(axes.flat[::2], data.places, strict=False):
        values = [place.maps[name] for name in data.methods]
        words, line = ("z.2f", 0.4) if size <= _SAID else ("", 0)
        mesh = heat_map(each, values, (-1, 1), rows=data.methods, words=words, colours=SIGNED, line=line)
        each.set_xticks([at + 0.5 for at in range(0, size, step)], data.parts[::step])
        each.tick_params(labelsize=8)
        each.set_title(_said(place), fontsize=9)
    figure.colorbar(mesh, ax=axes, shrink=0.8, aspect=18, label="score / its largest size")


def _said(place: PlaceMaps) -> str:
    sure = f"{place.answer}, p = {place.probability:.3f}"
    if place.place == "class":
        return sure  # the title of the figure says whether it is right
    return f"{place.place}: {sure}{wrong_words(place.answer, place.truth)}"


def _draw_curves(figure: SubFigure, data: ExplainedFigure) -> None:
    """A row a mode, a column a replacement."""
    grid = figure.subplots(len(MODES), len(data.curves), sharex=True, sharey=True)
    for line, mode in zip(grid, MODES, strict=True):
        for axes, replacement in zip(line, data.curves, strict=True):
            each = data.curves[replacement][mode]
            low, high = each["chance_low"], each["chance_high"]
            axes.fill_between(data.shares, low, high, color=GREY, alpha=0.25, linewidth=0)
            axes.plot(data.shares, each["chance"], "--", color=GREY, linewidth=1, label="chance")
            for name in data.methods:
                colour, marker = LOOKS[name]
                axes.plot(data.shares, each[name], marker=marker, color=colour, ms=3, lw=1, label=name)
            axes.set(ylim=(-0.04, 1.04), xlim=(-0.02, 1.02))
            axes.set_title(f"{mode}, {replacement}", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("share of parts", fontsize=8)
    for axes in grid[:, 0]:
        axes.set_ylabel("probability", fontsize=8)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)


@styled()
def draw_explain_many(found: Judgement) -> Figure:
    """Above, how much better than chance each method is; below, agreement and the check of weights."""
    figure = new_figure(9.5, 6.6)
    where = f", place {found.place}" if found.place else ""
    figure.suptitle(f"{found.run}: {found.inputs:,} {found.split} inputs{where}", fontsize=10)
    halves: Any = figure.subfigures(2, 1, height_ratios=(2.6, 3.4))
    top, bottom = halves
    _draw_advantages(top, found)
    left, right = bottom.subfigures(1, 2, width_ratios=(1, 1.05))
    rhos = [[found.agreement[a][b].value for b in found.methods] for a in found.methods]
    draw_agreement(left, found.methods, rhos)
    _draw_shuffled(right, found)
    return figure


def _draw_advantages(figure: SubFigure, found: Judgement) -> None:
    names = [*found.methods, *CONTROLS]
    grid = figure.subplots(1, len(found.replacements), sharex=True, sharey=True)
    for axes, replacement in zip(grid, found.replacements, strict=True):
        axes.axvline(0, color=GREY, linewidth=0.8)
        for mode in MODES:
            cells = [found.advantage[name][replacement][mode] for name in names]
            colour, form, offset = _MODES[mode]
            values, ends = [cell.value for cell in cells], [cell.ends for cell in cells]
            draw_estimates(axes, values, ends, (colour, form), mode, offset)
        axes.set_title(f"{replacement} in place of parts", fontsize=9)
        axes.set_xlabel("area better than chance", fontsize=8)
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=8)


def _draw_shuffled(figure: SubFigure, found: Judgement) -> None:
    axes = figure.subplots()
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.axvline(AGREE, color=GREY, linewidth=0.8, linestyle=":")
    cells = [found.shuffled[name] for name in found.methods]
    draw_estimates(axes, [cell.value for cell in cells], [cell.ends for cell in cells], (BLUE, "o"))
    labels = [f"{name}: {found.verdicts[name].answer}" for name in found.methods]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(-1.02, 1.02)
    axes.set_xlabel("rho with itself on shuffled weights; dots: limit", fontsize=8)
    axes.set_title("an explanation? and the check of weights", fontsize=9)


def draw_agreement(
    figure: SubFigure, names: list[str], values: list[list[float]], shuffled: list[float] | None = None
) -> None:
    """Spearman's rho of every method with every method, and apart from it with itself, weights shuffled."""
    axes, maps, columns = figure.subplots(), {0.0: values}, names
    if shuffled is not None:
        maps[len(names) + _APART] = [[value] for value in shuffled]
        columns = [*names, "itself, weights shuffled"]
    for left, rhos in maps.items():
        heat_map(axes, rhos, (-1, 1), rows=names, words="z.2f", colours=SIGNED, left=left)
    places = [left + place + 0.5 for left, rhos in maps.items() for place in range(len(rhos[0]))]
    axes.set_xticks(places, columns, rotation=35, ha="right", rotation_mode="anchor")
    axes.tick_params(labelsize=8)
    axes.set_title("agreement of ranks (Spearman's rho of sizes)", fontsize=9)


def draw_effects(axes: Axes, effects: dict[str, float], *, title: str) -> None:
    """A bar a head, right of 0 where it speaks for the answer; the sign stands beside the bar as well."""
    values = list(effects.values())
    axes.barh(range(len(values)), values, color=[BLUE if each >= 0 else ORANGE for each in values])
    for row, each in enumerate(values):  # right of the bar and of 0: on the left stand the names
        where = (max(0.0, each), row)
        axes.annotate(f"{each:+z.2f}", where, (2, 0), textcoords="offset points", va="center", fontsize=7)
    axes.axvline(0, color=GREY, linewidth=0.8)
    most = max(map(abs, values)) or 1.0
    low, high = min(0.0, *values), max(0.0, *values)
    axes.set_xlim(low - 0.05 * most * (low < 0), high + 0.45 * most)
    axes.spines["left"].set_visible(False)  # the line at 0 is what bars stand on
    axes.set_yticks(range(len(values)), list(effects), fontsize=7)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=7)
    axes.locator_params(axis="x", nbins=3)
    axes.set_title(title, fontsize=8)
