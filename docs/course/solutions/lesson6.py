"""A solution to lesson 6: does the last digit of a row occur before?"""

import attnlab as al


@al.task(symbols="01234567", classes=["no", "yes"])
def my_task(rng, length: int = 5):
    """Whether the last digit occurs among those before it."""
    row = [rng.choice("01234567") for _ in range(length)]
    if rng.random() < 0.5 and length > 1:
        row[rng.randrange(length - 1)] = row[-1]
    return row, "yes" if row[-1] in row[:-1] else "no"


_targets = my_task().splits(0).valid.targets
_share = _targets.float().mean().item()
best_guess = max(_share, 1 - _share)

settings = {"train": 4000, "width": 32, "layers": 2, "epochs": 9, "batch": 128}


def most_missed(run):
    rows = run.ablate(baselines=["mean"], examples=500).singles
    return max(rows, key=lambda head: rows[head].lost["all examples"].value)
