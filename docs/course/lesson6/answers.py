"""Lesson 6: your own task. Replace every ... by your answer, then run

attnlab check lesson6 answers.py
"""

import attnlab as al


@al.task(symbols="0123456789", classes=["no", "yes"])
def my_task(rng, length: int = 6):
    """What the model has to find out."""
    return ..., ...  # an input, a string or a list of symbols, and its answer


# The share (0 to 1) of validation examples that the most frequent answer gets right.
best_guess = ...

# Settings with which my_task is learned in seconds: at most 1,000 steps and 100,000 parameters.
settings = ...  # such as {"train": 4000, "width": 32, "layers": 2, "epochs": 8}


def most_missed(run):
    """The name of the head of a run of my_task without which most answers are lost, its mean in its
    place.
    """
    return ...
