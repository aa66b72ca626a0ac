"""Sets of keys that mean something in a list of numbers x.

next         s = t + 1
wrong_side   s > t and x_s < x_t, or s < t and x_s > x_t: keys that show the list to be unsorted
"""

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.problems.sorting.words import NUMBERS


def sorting_sets(tokens: Int[Tensor, "N T"]) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for a model that reads lists, as tokens with whatever stands in front of the numbers."""
    numbers = tokens < NUMBERS
    places = torch.arange(tokens.shape[1])
    after = places > places[:, None]  # (T, S)
    smaller, larger = (compare(tokens[:, None], tokens[..., None]) for compare in (torch.lt, torch.gt))
    return {
        ("encoder", "self"): {
            "next": places - places[:, None] == 1,
            "wrong_side": torch.where(after, smaller, larger) & numbers[:, None] & numbers[..., None],
        }
    }
