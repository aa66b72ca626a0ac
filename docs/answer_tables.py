"""The answers that studies open with, and the figures that README names, from the results."""

from explorer_tables import read as read_explorer
from head_tables import pruned_seeds, read
from length_tables import points_of, study_result
from patch_verdict import shares

from attnlab.analysis import percent

NEAR, FAR = 4096, 16_384
"""Lengths that the sorting study reaches with attention to all numbers, and with a window."""


def headline_table() -> str:
    """Four figures, what they are of, and where it stands how they were measured."""
    adder, pruned = read("addition/adder.json"), [seed["all_pairs"] for seed in pruned_seeds()]
    plain = [each["without_training"][0] for each in pruned]
    lowest = percent(min(each["correct"] / each["total"] for each in plain))
    removed = f"{len(plain[0]['removed'])} of {pruned_seeds()[0]['heads']}"
    places = [
        row for each in read_explorer("explorer/latency.json")["runs"].values() for row in each.values()
    ]
    rows = [
        ("figure", "what it is", "how it was measured"),
        ("---", "---", "---"),
        (
            f"{adder['perfect']} of {adder['total']}",
            "trained adders that get all 1,000,000 sums right, over seeds and processors",
            "[results](docs/results.md#addition-every-sum)",
        ),
        (
            _lowest("sorting-lengths", "default", FAR),
            f"of lists of {FAR:,} numbers classified correctly after training on 8 to 16 (lowest seed)",
            "[study](docs/explanation/studies/sorting.md)",
        ),
        (
            removed,
            f"heads removed from an adder without training; at least {lowest} of all sums stay right",
            "[pruning](docs/explanation/pruning.md)",
        ),
        (
            f"{max(row['p95'] for row in places):.0f} ms",
            "at most from a click in the explorer to the redrawn answer and heads (95% of interactions)",
            "[the explorer](docs/howto/explorer.md)",
        ),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _lowest(study: str, variant: str, length: int) -> str:
    (row,) = (each for each in points_of(study_result(study).variant(variant), "swap") if each.at == length)
    return percent(min(value for value in row.values if value is not None))


def adder_answer() -> str:
    """Which heads of the shipped adder do what, and how many it needs."""
    shipped = pruned_seeds()[0]
    alone, plain = shipped["alone"]["optimal"], shipped["all_pairs"]["without_training"][0]
    return (
        "**Cross heads read the two digits of the column that is being written, and a carry "
        "reaches the answer by two "
        "routes: through cross heads of the first decoder layer, and through the digit that was "
        "written before. "
        f"{alone['heads']} of {shipped['heads']} heads cost less than one percentage point when "
        "one of them is removed, but "
        f"removing all of these leaves {percent(alone['together'])} of sums right; chosen jointly "
        "and refitted, "
        f"{len(plain['removed'])} can go with {percent(plain['correct'] / plain['total'])} right.**"
    )


def patch_answer() -> str:
    """What the 38% came from."""
    rows = shares(study_result("patch-attention"), 0.1).rows
    width, positions, rate, whole = (row[1].removeprefix("+").removesuffix(" points") for row in rows)
    return (
        f"**It was the learning rate: raising it from 0.01 to 0.1 brings {rate} of the {whole} "
        "percentage points between "
        f"the model that stayed at 38% and one that works, the start of the positions {positions} "
        f"and the width {width}. "
        "At 0.1 every start of the positions works.**"
    )


def sorting_answer() -> str:
    """What decides length."""
    return (
        "**Neither the positional encoding nor the pooling decides alone: a model works far beyond "
        "its training lengths if "
        "places stay within what training showed, attention stays sharp as lists grow, and "
        "training lists look like pieces "
        "of long ones. Trained on 8 to 16 numbers, such models classify "
        f"{_lowest('sorting-lengths', 'default', FAR)} of lists "
        f"of {FAR:,} correctly with a window of two neighbours, and "
        f"{_lowest('sorting-global-seeds', 'global', NEAR)} of lists of "
        f"{NEAR:,} with attention to all numbers (lowest seed).**"
    )
