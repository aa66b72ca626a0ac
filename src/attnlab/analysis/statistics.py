"""Intervals for what was counted, and shares for people."""


def proportion_interval(hits: int, count: int) -> tuple[float, float]:
    """95% interval of a share (Wilson, 1927), which stays sound at 0 and 1."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    if count == 0:
        return (0.0, 1.0)
    interval = binomtest(hits, count).proportion_ci(confidence_level=0.95, method="wilson")
    return (float(interval.low), float(interval.high))


def percent(share: float) -> str:
    """A share for people: never rounded up to 100%."""
    text = f"{100 * share:.2f}%"
    return text if share == 1 or text != "100.00%" else ">99.99%"


def two_places(value: float | None) -> str:
    """A number for people with two digits behind the point: never -0.00, and none where there is none."""
    return "none" if value is None else f"{round(value, 2) + 0.0:.2f}"
