"""Every threshold of the doctor, in one table. ``docs/doctor.md`` shows it; nothing else holds a number.

None is calibrated yet: each was chosen by judgement, to be calibrated by the study ``doctor``.
"""

from dataclasses import dataclass
from typing import final

JUDGED = "chosen by judgement, to be calibrated by the study `doctor`"
EXACT = "an identity: what differs by more than rounding differs"


@final
@dataclass(frozen=True)
class Limit:
    """A number that decides, what it is compared with, and where it came from."""

    name: str
    value: float
    meaning: str
    origin: str = JUDGED


LIMITS: dict[str, Limit] = {}
"""All of them, by name."""


def _limit(name: str, value: float, meaning: str, origin: str = JUDGED) -> Limit:
    LIMITS[name] = Limit(name, value, meaning, origin)
    return LIMITS[name]


ROUNDING = _limit("rounding", 1e-4, "change of a logit, relative to the spread of all logits", EXACT)
ROW_SUM = _limit("row sum", 1e-3, "distance of the sum of a row of the pattern from 1", EXACT)
SAME_QK = _limit("same q and k", 1e-5, "distance of q from k, relative to their size", EXACT)
LINEAR = _limit("linear scores", 1e-2, "share of the scores that no multiple of q·k explains", EXACT)
SCALE = _limit("scale", 0.1, "distance of log(scale · √K) / log √K from 1 or -1")
UNIFORM = _limit("uniform", 0.999, "entropy of a head's rows over the largest possible")
DEAD = _limit("dead", 1e-6, "change of a logit without the head, relative to the spread of all logits")
MANY_DEAD = _limit("many dead", 0.5, "share of heads that are dead")
SATURATED = _limit("saturated", 10.0, "spread of position vectors over that of token vectors")
GOOD = _limit("good", 0.9, "accuracy from which a striking but harmless fact is only noted")
DONE = _limit("done", 0.95, "validation accuracy from which a slow end of training is no fault")
INITIAL = _limit("initial loss", 2.0, "loss of fresh weights over log V")
FALLING = _limit(
    "still falling", 0.1, "share of the training loss that the last fifth of the steps took off"
)
EVEN = _limit("even fall", 0.3, "share of the whole fall that happened in the second half of training")
LITTLE = _limit("little learned", 0.5, "training loss at the end over that at the beginning")
STUCK = _limit("stuck", 0.95, "training loss at the end over that at the beginning, or the reverse")
MOVED = _limit("moved", 0.05, "median distance of a matrix from its first value, over its size")
JUMP = _limit("jump", 3.0, "a logged loss over the median of the five before it")
DIVERGED = _limit("diverged", 1.5, "training loss at the end over its lowest")
RESTLESS = _limit("restless", 0.15, "typical jump between logged losses over their mean")
CLIPPED = _limit("clipped", 0.9, "share of gradients that are longer than the clip")
CHOKED = _limit("choked", 100.0, "typical length of a gradient over the clip")
FLAT = _limit("flat", 0.05, "learning rate over its peak, below which hardly anything is learned")
EARLY = _limit("early end", 0.3, "share of the steps behind the last useful learning rate")
GAP = _limit("gap", 0.1, "training accuracy minus validation accuracy")
RISEN = _limit("risen", 1.2, "validation loss at the end over its lowest")
MAJORITY = _limit("majority", 0.02, "accuracy minus the share of the most frequent answer")
KEPT = _limit("kept", 0.02, "best validation accuracy minus that of the kept weights")
FORCED = _limit("forced", 0.03, "accuracy with true tokens fed minus accuracy with its own tokens fed")
OVERLAP = _limit("overlap", 0.01, "share of validation examples that are training examples too")
UNSCALED = _limit("unscaled", 10.0, "largest of the mean and the spread of the input's numbers")
UNEVEN = _limit("uneven gradients", 1e4, "largest gradient of a layer over the smallest")
UNMOVED = _limit("unmoved", 1e-9, "1 - cosine of a matrix with the one that training began with")
DEAD_UNITS = _limit("dead units", 0.9, "share of hidden units that have the same value for every token")
SKEWED = _limit("skewed", 0.9, "share of training examples with the most frequent class")
