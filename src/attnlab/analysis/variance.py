"""Two-way analysis of variance: how much of the spread one factor explains, the other, and both together.

For values y of I x J cells with n seeds each, all cells having the same seeds, with means over what is
written as a dot:

    SS_rows = J n sum (y_i.. - y...)^2,       SS_columns = I n sum (y_.j. - y...)^2,
    SS_both = n sum (y_ij. - y_i.. - y_.j. + y...)^2,      SS_seeds = sum (y_ijk - y_ij.)^2

They add up to the whole. A share of SS would count chance as explained, the more the fewer seeds there are;
so the share reported is omega squared (Hays, 1963), which takes out what seeds alone would give:

    omega^2 = (SS - df MS_seeds) / (SS_whole + MS_seeds),     MS_seeds = SS_seeds / (I J (n - 1))

Intervals are of the percentile bootstrap over seeds: a draw takes the same seeds in every cell.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from attnlab.analysis.statistics import Share, VarianceParts
from attnlab.errors import LabError

DRAWS = 2000


def explained(values: NDArray[np.float64], *, draws: int = DRAWS) -> VarianceParts:
    """Share of the variance by part, with its interval; ``values`` are (rows, columns, seeds)."""
    rows, columns, seeds = values.shape
    if min(rows, columns, seeds) < 2:
        raise LabError(
            f"variance cannot be parted among {rows} x {columns} cells with {seeds} seeds; "
            "at least two of each are needed"
        )
    picks = np.random.default_rng(0).integers(seeds, size=(draws, seeds))
    drawn = np.array([_shares(values[:, :, pick]) for pick in picks])
    ends = np.percentile(drawn, (2.5, 97.5), axis=0).T.tolist()
    found = zip(_shares(values), ends, strict=True)
    return VarianceParts(*(Share(share, (low, high)) for share, (low, high) in found))


def sums_of_squares(values: Float[NDArray[np.float64], "I J n"]) -> dict[str, float]:
    """SS by part, and degrees of freedom are (I - 1), (J - 1), their product, and I J (n - 1)."""
    rows, columns, seeds = values.shape
    middle = values.mean()
    by_row, by_column = values.mean(axis=(1, 2)), values.mean(axis=(0, 2))
    cells = values.mean(axis=2)
    mixed = cells - by_row[:, None] - by_column[None, :] + middle
    return {
        "rows": columns * seeds * float(((by_row - middle) ** 2).sum()),
        "columns": rows * seeds * float(((by_column - middle) ** 2).sum()),
        "both": seeds * float((mixed**2).sum()),
        "seeds": float(((values - cells[:, :, None]) ** 2).sum()),
    }


def _shares(values: NDArray[np.float64]) -> list[float]:
    rows, columns, seeds = values.shape
    squares = sums_of_squares(values)
    noise = squares["seeds"] / (rows * columns * (seeds - 1))
    whole = sum(squares.values()) + noise
    if whole == 0:
        return [0.0] * len(squares)
    freedom = {"rows": rows - 1, "columns": columns - 1, "both": (rows - 1) * (columns - 1)}
    found = [(squares[part] - free * noise) / whole for part, free in freedom.items()]
    return [*found, 1 - sum(found)]
