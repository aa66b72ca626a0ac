"""Every threshold of the doctor, in one table, which ``docs/howto/doctor.md`` shows.

They were chosen by one half of the study ``doctor``, whose other half measures how well they do.
"""

from dataclasses import dataclass
from typing import final

JUDGED = "judgement; the half of the study `doctor` that thresholds were chosen by left it as it was"
BETWEEN = "between planted and healthy runs of the half of the study `doctor` that it was chosen by"
LATER = "between planted and healthy runs of the study `doctor` but for those that were set apart later"
TRIED = "the rates of the healthy trainings of the study `doctor`, rounded"
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
SCALE = _limit("scale", 0.1, "how far log(scale · √K) / log √K may stay below 1 or above -1")
UNIFORM = _limit("uniform", 0.999, "entropy of a head's rows over the largest possible")
FAINT = _limit("faint", 0.1, "scale · K: that of scores which are scaled twice is 1", BETWEEN)
DEAD = _limit("dead", 1e-6, "change of a logit without the head, relative to the spread of all logits")
MANY_DEAD = _limit("many dead", 0.5, "share of heads that are dead")
SATURATED = _limit("saturated", 10.0, "spread of position vectors over that of token vectors")
GOOD = _limit("good", 0.9, "accuracy from which a striking but harmless fact is only noted")
DONE = _limit("done", 0.95, "validation accuracy from which a slow end of training is not a fault")
INITIAL = _limit("initial loss", 4.0, "loss of fresh weights over log V", BETWEEN)
FALLING = _limit(
    "still falling", 0.1, "share of the training loss that the last fifth of the steps took off"
)
EVEN = _limit("even fall", 0.3, "share of the whole fall that happened in the second half of training")
LITTLE = _limit("little learned", 0.5, "training loss at the end over that at the beginning")
STUCK = _limit("stuck", 0.95, "training loss at the end over that at the beginning, or the reverse")
MOVED = _limit("moved", 0.1, "median distance of a matrix from its first value, over its size", BETWEEN)
FAR_MOVED = _limit(
    "far moved", 2.0, "median distance of a matrix from its first value, over its size", BETWEEN
)
HIGH_PEAK = _limit("high peak", 1.5, "highest training loss after the first over log V", BETWEEN)
JUMP = _limit("jump", 3.0, "a logged loss over the median of the five before it")
DIVERGED = _limit("diverged", 1.5, "training loss at the end over its lowest")
RESTLESS = _limit("restless", 0.15, "typical jump between logged losses over their mean")
CLIPPED = _limit("clipped", 0.9, "share of gradients that are longer than the clip")
CHOKED = _limit("choked", 30.0, "typical length of a gradient over the clip", BETWEEN)
FLAT = _limit("flat", 0.1, "learning rate over its peak, below which hardly anything is learned")
EARLY = _limit("early end", 0.3, "share of the steps behind the last useful learning rate")
GAP = _limit("gap", 0.1, "training accuracy minus validation accuracy")
RISEN = _limit("risen", 1.3, "validation loss at the end over its lowest", BETWEEN)
MAJORITY = _limit("majority", 0.02, "accuracy minus the share of the most frequent answer")
KEPT = _limit("kept", 0.02, "best validation accuracy minus that of the kept weights")
KEPT_NOISE = _limit("kept noise", 2.0, "the same, over its standard error", BETWEEN)
FORCED = _limit("forced", 0.03, "accuracy with true tokens fed minus accuracy with its own tokens fed")
OVERLAP = _limit("overlap", 0.01, "share of validation examples that are training examples too")
UNSCALED = _limit("unscaled", 10.0, "largest of the mean and the spread of the input's numbers")
UNMOVED = _limit("unmoved", 1e-9, "1 - cosine of a matrix with the one that training began with")
DEAD_UNITS = _limit("dead units", 0.9, "share of hidden units that have the same value for every token")
SKEWED = _limit("skewed", 0.9, "share of training examples with the most frequent class")
CAUSE = _limit("cause", 0.5, "confidence from which a finding explains others")
FAR = _limit("far rate", 3.0, "the usual rate over the present one, or the reverse, from which it is tried")
USUAL = {
    "adamw": _limit("usual rate of adamw", 4e-3, "the rate that a remedy goes to from far away", TRIED),
    "muon": _limit("usual rate of muon", 5e-3, "the rate that a remedy goes to from far away", TRIED),
    "sgd": _limit("usual rate of sgd", 0.15, "the rate that a remedy goes to from far away", TRIED),
}
USUAL_STEP = _limit(
    "usual step", 0.02, "first steps at the full rate over the length of the weights", TRIED
)
WIDEST = _limit("widest rate", 10.0, "the usual rate by the first steps over that of small models, at most")
TINY = _limit("tiny", 0.02, "spread of the input's numbers, below which they are hardly seen")
ALARM = _limit(
    "alarm", 0.001, "p-value, adjusted for the number of tests", "the share of healthy cases it may accuse"
)
APART = _limit(
    "apart", 0.05, "distance of the shares in two splits, beyond that of splits drawn alike", BETWEEN
)
TELLING = _limit("telling", 0.1, "share of inputs put into the right split, beyond that of guessing")
REPEATED = _limit("repeated", 0.5, "share of training examples that are the same as an earlier one")
ABOVE_CHANCE = _limit("above chance", 0.25, "share of the way from guessing to all answers right")
CONTRADICTED = _limit("contradicted", 0.02, "share of wrong answers among those the model is surest of")
EVEN_ERRORS = _limit("even errors", 0.65, "wrong answers among the surest half over those among all")
EVEN_TOP = _limit(
    "even top", 0.75, "wrong answers among the surest fifth over those among the surest half", LATER
)
EVEN_FLOOR = _limit(
    "even floor",
    0.25,
    "labels in the worst quarter of ranks over those below the best quarter; 1/3 if they fit by chance",
    LATER,
)
CHANCE_P = _limit("chance", 0.05, "p-value of being no better than the most frequent answer")
WAY = _limit("way", 0.2, "length of all steps together over that of the weights, of the median layer")
STEEP = _limit("steep", 0.1, "one of the first steps at the full rate over the length of the weights")
TIGHT = _limit("tight", 10.0, "typical length of a gradient over the clip, of an optimiser that heeds it")
BEST_AGAIN = _limit("best again", 0.8, "share of seeds with which the better of two variants is better")
SAME_SPLITS = _limit("same splits", 0.5, "share of test examples that are validation examples")
GROUPED = _limit("grouped", 0.3, "share of the variation of answers that is between batches")
SILENT = _limit("silent", 0.9, "share of the targets of a class at which the loss has no gradient")
INSIDE = _limit("inside", 0.05, "share of these that stand between targets that have one")
PEAK_AT_ONCE = _limit("peak at once", 0.5, "learning rate of the first step over the highest")
FIRST_STEP = _limit("first step", 0.035, "first step over the length of the weights, of the median layer")
LARGE_BATCH = _limit("large batch", 0.2, "share of the training examples that a batch holds")
FEW_UPDATES = _limit("few updates", 300, "steps of a training, at most, for a large batch to be its fault")
SHRUNK = _limit("shrunk", 0.4, "length of the weights at the end over that at the beginning")
INWARD = _limit("inward", 0.7, "cosine between a typical step and minus the weights")
SCALED = _limit("first scale", 4.0, "spread of first weights times √inputs, or the reverse")
VANISH = _limit("vanishing", 0.005, "gradient of a layer over the largest of those behind it")
EXPLODE = _limit("exploding", 50.0, "gradient of a layer over the largest of those behind it")
SURE = _limit("sure", 0.7, "confidence from which a finding is told while training goes on")
FASTER = _limit("faster", 0.1, "fall of the logarithm of a short training's loss by another rate")
SOON = _limit("soon", 0.2, "steps in which another rate gets as far over those of the run")
BY_HEART = _limit("by heart", 0.9, "accuracy on one batch from which it counts as learned by heart")
BY_HEART_ALL = _limit(
    "all by heart", 0.99, "training accuracy from which there is nothing left to be learned", LATER
)
LEARNED = _limit("learned", 0.7, "loss at the end of a short training over that at its beginning")
NO_EASIER = _limit(
    "no easier", 0.05, "loss at the end that is due to what was taken away, over the first loss"
)
