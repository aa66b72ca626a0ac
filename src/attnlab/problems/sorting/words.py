"""Tokens of lists, the words for how unsorted lists are made, and what is measured of many lengths.

A list of numbers is **sorted** if none is smaller than the one before it. Unsorted lists are made in one of
three ways, or in several with given shares:

    swap        one pair of different neighbours exchanged: one place is wrong, whatever the length
    reference   max(2, L // 3) exchanges of two arbitrary places, as in the reference reports
    shuffle     a random order
    swap=0.7,reference=0.3      seven tenths of the unsorted lists in one way, three in the other
"""

import math
from typing import Literal, get_args

from attnlab.errors import SpecError, brief, nearest
from attnlab.specs.rules import require

NUMBERS = 100
"""Numbers go from 0 to 99; each is its own token."""
PAD, CLS = 100, 101
"""Tokens that are no numbers: what fills up shorter lists, and what pooling ``cls`` puts in front."""
TOKENS = 102
UNSORTED, SORTED = 0, 1
CLASSES = ("unsorted", "sorted")
SHORTEST, LONGEST = 2, 16_384
"""Lengths that the task knows."""

Way = Literal["swap", "reference", "shuffle"]
"""How an unsorted list is made."""

Sampling = Literal["uniform", "ranges", "bands"]
"""Where the numbers of a list come from: from 0 to 99; for one list of two from between two random numbers,
which are seldom 0 or 99; for four of five from a band around a random number, cut off at 0 and 99."""

LENGTHS = "8,12,16,32,...,4096"
"""Lengths at which lists are measured."""
NEGATIVES = ("swap", "reference")
"""How those lists are put out of order."""
LISTS = 1000
"""How many there are at each length."""
STUDIED = {
    "lengths-factorial": ("16,64,256", 500),
    "lengths-256": ("8,12,16,32,...,256", 500),
    "lengths-1024": ("8,12,16,32,...,1024", 1000),
    "lengths-4096": ("16,256,1024,4096", 200),
    "lengths-16384": ("8,12,16,32,64,256,1024,4096,16384", 400),
}
"""What studies measure of a run, by the name under which it is kept: lengths, and lists at each."""


def read_negatives(text: str) -> dict[Way, float]:
    """The share of each way in ``swap`` or ``swap=0.7,reference=0.3``."""
    words = text.split(",")
    if len(words) == 1 and "=" not in text:
        return {_way(text, text): 1.0}
    shares: dict[Way, float] = {}
    for word in words:
        name, _, share = word.partition("=")
        way = _way(name, text)
        require(way not in shares, "negatives", text, f"without {way} twice")
        shares[way] = _share(share, text)
    require(math.isclose(sum(shares.values()), 1), "negatives", text, "shares that sum to 1")
    return shares


def _way(name: str, text: str) -> Way:
    for way in get_args(Way):
        if name.strip() == way:
            return way
    raise SpecError(
        f"negatives {brief(text)}: unknown way {brief(name.strip())}{nearest(name, get_args(Way))}"
    )


def _share(share: str, text: str) -> float:
    try:
        number = float(share)
    except ValueError:
        number = math.nan
    require(0 < number <= 1, "negatives", text, "a way, or shares above 0 such as swap=0.7,reference=0.3")
    return number
