"""What ``patch`` finds: heads that restore something by themselves, and the smallest sets of heads."""

from collections.abc import Iterator

from attnlab.analysis.patch.contrasts import CarrierSet, Contrast, Effect, PatchResult
from attnlab.analysis.patch.grids import HEADS, STREAM
from attnlab.figures.patching import draw_grids, head_grids_data, positions_data, stream_data
from attnlab.results import Drawing, Interval, Part, Table

SHOWN = 0.05  # heads that restore less are not shown
FIGURES = {"heads": head_grids_data, "stream": stream_data, "positions": positions_data}


def tables(found: PatchResult) -> Iterator[Part]:
    """The residual stream is shown only where there is one contrast."""
    for contrast in found.columns:
        yield from _heads(found, contrast)
        if len(found.columns) == 1:
            yield from _stream(contrast)
    if any(each.held_out for each in found.carriers):
        yield carriers_table(found)
    for each in found.carriers:
        yield sentence(found, each)


def figures(found: PatchResult) -> dict[str, Drawing]:
    """Maps of every contrast."""
    return {
        f"patch-{contrast.column}-{name}": Drawing(data_of(contrast, found.words), draw_grids)
        for contrast in found.columns
        for name, data_of in FIGURES.items()
    }


def _heads(found: PatchResult, contrast: Contrast) -> Iterator[Part]:
    """The heads that restore something by themselves."""
    put_in, taken_out = (
        next(grid for grid in grids if grid.quantity == HEADS)
        for grids in (contrast.denoising, contrast.noising)
    )
    rows = []
    for place, head in enumerate(put_in.rows):
        shares, back = put_in.share[place], taken_out.share[place]
        if max(abs(shares[0]), abs(back[0])) >= SHOWN:
            z = _share(shares[0], put_in.interval[place][0])
            rows.append((head, z, *map(_percent, shares[1:]), _percent(back[0])))
    shown = contrast.example.values()
    base, donor = (each if isinstance(each, str) else "+".join(map(str, each)) for each in shown)
    yield Table(
        f"{found.run}, {found.words.title(contrast.name)}, {contrast.pairs} pairs such as {base} and "
        f"{donor}: share of the logit difference restored",
        ("head, all positions", *put_in.columns, "z taken out"),
        tuple(rows),
    )
    yield f"{len(put_in.rows) - len(rows)} heads by themselves restore less than {_percent(SHOWN)} with z"
    if contrast.warning is not None:
        yield f"warning: {contrast.warning}"


def _stream(contrast: Contrast) -> Iterator[Part]:
    """The residual stream by position."""
    for grid in contrast.denoising:
        if grid.quantity == STREAM:
            yield Table(
                "the residual stream after each sublayer, by position",
                ("after", *grid.columns),
                tuple(
                    (name, *map(_percent, shares))
                    for name, shares in zip(grid.rows, grid.share, strict=True)
                ),
            )


def carriers_table(found: PatchResult) -> Table:
    """A row for each set and contrast."""
    words = found.words
    return Table(
        "smallest sets of heads, on pairs that were not used to find them",
        (
            words.what or words.several,
            *("heads", "pairs", "put in", "answers changed", "taken out", "answers changed"),
        ),
        tuple(
            (
                tested.name + (f", for every {words.several}" if len(each.columns) > 1 else ""),
                str(len(each.heads or ())),
                str(tested.pairs),
                *_tested(tested.denoising),
                *_tested(tested.noising),
            )
            for each in found.carriers
            for tested in each.held_out
        ),
    )


def _tested(effect: Effect) -> tuple[str, str]:
    """Share restored and answers that became the other example's."""
    return _share(effect.share, effect.interval), _share(effect.flipped, effect.flipped_interval)


def sentence(found: PatchResult, carriers: CarrierSet) -> str:
    """Which heads, and how sure it is that fewer do not suffice."""
    named = {each.column: each.name for each in found.columns}
    title = found.words.title(", ".join(named[column] for column in carriers.columns))
    goal = _percent(carriers.goal)
    if carriers.heads is None:
        whole = _percent(min(carriers.of_all_heads))
        return (
            f"{title}: all heads together restore {whole}, less than {goal}; the rest comes with "
            f"{found.words.rest}"
        )
    heads, size = ", ".join(carriers.heads), len(carriers.heads)
    if not carriers.smallest:
        known = f"no set of up to {carriers.exhausted} restores {goal}, larger sets were not all tried"
    elif size == 1:
        known = "by itself"
    else:
        known = f"no set of {size - 1} restores {goal}"
    count = len(carriers.others)
    others = f"; {count} other {'sets' if count > 1 else 'set'} of {size} do{'' if count > 1 else 'es'} too"
    return f"{title}: {heads} ({known}{others if count else ''})"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%".replace("-0%", "0%")


def _share(share: float, interval: Interval) -> str:
    low, high = (_percent(end) for end in interval)
    return f"{_percent(share)} ({low} to {high})"
