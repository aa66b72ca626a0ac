"""Sentences of report pages: made-up numbers, and what is told of them."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy.stats import chi2_contingency

from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import Single
from attnlab.analysis.evaluate import Forced, Stratum
from attnlab.analysis.heads import HeadsResult, MeasuredHead, Metric
from attnlab.analysis.maps import PatchMap
from attnlab.analysis.mistakes import LOOKED_AT, ImageMistakes
from attnlab.analysis.record import AttentionPatterns
from attnlab.analysis.statistics import proportion_interval
from attnlab.figures.maps import MappedImage
from attnlab.figures.patterns import LayerData
from attnlab.problems.addition.evaluate import AdditionEvaluation
from attnlab.problems.addition.sections import proof
from attnlab.problems.sorting.evaluate import SortingEvaluation
from attnlab.problems.sorting.lengths import Lengths, Trained
from attnlab.problems.sorting.sections import notes
from attnlab.report.common import course_of, curves_figure, furthest, lost_words, tells_every_head
from attnlab.report.digits import alike_p, groups_compared, marked, strata_figure
from attnlab.report.images import map_signs, sharpness
from attnlab.report.reasons import most_missed
from attnlab.report.task import even_weight, pattern_figure
from attnlab.results import Estimate
from attnlab.runs import EpochRecord, Metrics
from attnlab.runs.records import Record


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([0.51234], "Here only one epoch was trained; its validation loss is 0.512."),
        (
            [0.9, 1.5, 0.6],  # it rose on the way
            "Here the validation loss is lowest at the end: 0.6 in epoch 7, whose weights are used.",
        ),
        (
            [0.9, 0.5, 0.65],
            "Here the validation loss ended at 0.65, 1.30 times its lowest, 0.5 in epoch 6, whose weights "
            "are used.",
        ),
        (
            [0.9, 0.0, 0.25],
            "Here the validation loss ended at 0.25, after its lowest, 0 in epoch 6, whose weights "
            "are used.",
        ),
    ],
)
def test_course_of_the_loss(losses: list[float], told: str) -> None:
    epochs = list(range(5, 5 + len(losses)))
    assert course_of(epochs, losses) == told
    records: list[Record] = [
        EpochRecord(epoch, 3, 1.0, loss, 0.5, valid_exact_match=0.5, seconds=1.0)
        for epoch, loss in zip(epochs, losses, strict=True)
    ]
    assert curves_figure(Metrics(lines=records)).signs.endswith(f"or nothing falls at all. {told}")


def test_the_loss_that_is_drawn_is_told_and_the_one_that_chose_the_weights() -> None:
    told = course_of([1, 2, 3], [0.5, 0.2, 0.25], [0.9, 0.8, 0.7])
    assert "ended at 0.25, 1.25 times its lowest, 0.2 in epoch 2." in told
    assert "weights of epoch 3 are used" in told
    assert "smoothed labels" in told
    assert "0.7" in told


def _head(head: str, **cells: tuple[float, float]) -> MeasuredHead:
    metrics = {name: Metric(value, None, even, 7) for name, (value, even) in cells.items()}
    return MeasuredHead(head, "encoder self", metrics)


def test_the_head_furthest_from_even_may_look_away() -> None:
    found = HeadsResult(
        examples=7,
        metrics={"entropy": "entropy", "diagonal": "weight on the own token", "next": "weight after"},
        places=[],
        heads=[
            _head("encoder.0.self.0", entropy=(0.1, 1.0), diagonal=(0.5, 0.3)),
            _head("encoder.0.self.1", entropy=(0.9, 1.0), next=(0.01, 0.4)),
        ],
    )
    assert furthest(found) == (
        "; furthest from even is encoder.0.self.1: weight after 0.01, where even attention has 0.40"
    )
    assert furthest(replace(found, heads=[_head("a", entropy=(0.1, 1.0))])) == ""
    near = furthest(replace(found, heads=[_head("a", next=(0.01, 0.02))]))
    assert near == "; no weight on a set of keys differs from that of even attention by 0.05 or more"


def _lost(head: str, value: float, low: float, high: float) -> Single:
    return Single(head, 1.0, 1.0, Estimate(0.0, None), {"all examples": Estimate(value, (low, high))}, {})


def _ablated(baselines: dict[str, list[Single]], towards: Any) -> AblationResult:
    return AblationResult(
        examples=7,
        exact_match=0.75,
        loss=1.0,
        strata={},
        baselines=baselines,
        hardest_hit={},
        disagreements=[],
        agreement=None,
        towards=towards,
    )


HEADS = [_lost("a", 0.25, 0.1, 0.4), _lost("b", 0.03, -0.02, 0.08)]


@pytest.mark.parametrize(
    ("baselines", "by", "most", "here"),
    [
        (
            {"mean": HEADS},
            "by a constant, with its",
            "Most is lost without a: 25.0 percentage points (baseline mean).",
            "1 of 2 heads are needed, each by itself: the interval lies above 0 (baseline mean).",
        ),
        (
            {"zero": [_lost("a", 0.0, 0.0, 0.0), _lost("b", -0.1, -0.2, 0.0)], "mean": HEADS},
            "by a constant, with its",
            "Nothing is lost without any single head (baseline zero).",
            "0 of 2 heads are needed, each by itself: the interval lies above 0 (baseline zero).",
        ),
        (
            {"optimal": HEADS, "resample": HEADS},
            "by a constant, or for resample by its output on another example, with its",
            "Most is lost without a: 25.0 percentage points (baseline optimal).",
            "1 of 2 heads are needed, each by itself: the interval lies above 0 (baseline optimal).",
        ),
    ],
)
def test_what_is_lost_without_heads(
    baselines: dict[str, list[Single]], by: str, most: str, here: str
) -> None:
    reading, signs = lost_words(_ablated(baselines, next(iter(baselines))))
    assert reading == (
        "A mark is the exact match lost, of 75.00% on 7 examples, when one head's output is replaced "
        f"{by} 95% interval over examples. {most}"
    )
    assert signs.endswith(f"an interval across 0 proves nothing. Here {here}")


@pytest.mark.parametrize(
    ("towards", "heads", "fits"),
    [
        ("mean", ["a", "b"], True),
        ("optimal", ["b", "a"], True),
        ("mean", ["a", "b", "c"], False),
        ("resample", ["a", "b"], False),
    ],
)
def test_only_an_ablation_of_all_heads_towards_a_constant_is_used(
    towards: str, heads: list[str], fits: bool
) -> None:
    assert tells_every_head(_ablated({towards: HEADS}, towards), heads) is fits


def test_p_of_groups_is_that_of_the_chi_squared_test() -> None:
    examples, wrong = [1000, 1100, 900, 1200], [60, 70, 40, 85]
    right = [count - bad for count, bad in zip(examples, wrong, strict=True)]
    wanted = chi2_contingency([wrong, right], correction=False).pvalue
    assert 0.05 < wanted < 0.15
    assert alike_p(examples, wrong) == pytest.approx(wanted, abs=0.01)
    assert alike_p([50, 50], [25, 25]) == 1
    # all three in one half: 2 C(50, 3) of C(100, 3) ways
    assert alike_p([50, 50], [3, 0]) == pytest.approx(2 * 19600 / 161700, abs=0.015)


@pytest.mark.parametrize(
    ("examples", "shares", "told"),
    [
        (
            [100, 100, 100],
            [0.9, 0.5, 0.91],
            "Here the difference between the 3 groups, taken together, is rarely so large by chance "
            "(p < 0.001): at least one group differs from others.",
        ),
        (
            [50, 50],
            [1.0, 1.0],
            "Here the groups do not differ.",
        ),
        ([50, 50], [0.0, 0.0], "Here the groups do not differ."),
        ([50], [0.5], "Here the groups do not differ."),
        (
            [10, 10, 10],
            [0.9, 0.9, 0.9],
            "Here the difference between the 3 groups, taken together, is often as large by chance "
            "(p = 1), which does not prove the groups alike.",
        ),
    ],
)
def test_differences_of_groups(examples: list[int], shares: list[float], told: str) -> None:
    assert groups_compared(examples, shares) == told
    rows = [
        Stratum(str(place), count, share, (share, share))
        for place, (count, share) in enumerate(zip(examples, shares, strict=True))
    ]
    drawn = strata_figure("cells", "By cell", rows, group="cell", whole=0.5)
    assert drawn.signs.endswith(f"a blind spot that the mean hides. {told}")


def test_extremes_of_ten_like_groups_are_not_told_as_more_than_chance() -> None:
    shares = [0.81, 0.84, 0.85, 0.85, 0.86, 0.86, 0.87, 0.88, 0.89, 0.93]
    assert proportion_interval(162, 200)[1] < proportion_interval(186, 200)[0]
    told = groups_compared([200] * 10, shares)
    assert told.startswith("Here the difference between the 10 groups, taken together, is often as large")


@pytest.mark.parametrize(
    ("count", "likely", "told"),
    [
        (LOOKED_AT, 4, "4 are likely mislabelled"),
        (LOOKED_AT + 1, 4, f"of the {LOOKED_AT} surest, 4 are likely mislabelled"),
        (7, 1, "1 is likely mislabelled"),
    ],
)
def test_likely_mislabelled(count: int, likely: int, told: str) -> None:
    assert marked(ImageMistakes(count, count, count, likely, likely, [])) == told


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ([[0.25, 0.75], [0.5, 0.5]], " (0.50 for each of 2 keys)"),
        ([[1.0, 0.0], [0.5, 0.5]], ""),  # causal
        ([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]], ""),  # a window of one
        ([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], " (0.50 for each of 2 keys)"),
    ],
)
def test_even_weight(head: list[list[float]], told: str) -> None:
    assert even_weight([LayerData("encoder.0.self", [], [], [head])]) == told
    keys = [str(key) for key in range(len(head[0]))]
    pattern = AttentionPatterns("encoder.0.self", torch.tensor([head]), keys[: len(head)], keys)
    signs = pattern_figure("patterns", "Every head", "1 2", [pattern]).signs
    assert f"Bad: rows of one even colour{told}, which choose nothing. Here " in signs


def _map(
    name: str, weights: list[list[float]], entropy: float, most: float, on_digit: float | None = None
) -> PatchMap:
    return PatchMap(
        map=name,
        of="cls",
        entropy=entropy,
        most_entropy=most,
        evenness=entropy / most if most else None,
        entropy_of_rows=None,
        peak=max(map(max, weights)),
        peak_at=(0, 0),
        front=0.0,
        query=None,
        on_digit=on_digit,
        weights=weights,
    )


def _image(rows: list[list[PatchMap]], high: int, wide: int) -> MappedImage:
    """Ink at the left."""
    pixels = [[255] * (wide // 2) + [0] * (wide // 2)] * high
    return MappedImage("test:0", "3", None, high * wide // 28**2, pixels, rows)


def test_maps_of_patches_tell_of_ink() -> None:
    maps = [
        _map("a.0", [[3.0, 0.0], [0.6, 0.4]], 0.5, 1.0),
        _map("a.1", [[1.0, 1.0], [1.0, 1.0]], 1.0, 1.0),
    ]
    images = [_image([maps], 28, 28)]
    assert sharpness(images) == (
        "All maps have one scale, from 0 to 4 times even attention. The highest weight is 3.0 times even; "
        "the sharpest map is a.0, with 50% of the entropy of an even one."
    )
    assert map_signs(images).endswith(
        "empty paper. Here patches with ink are 50.00% of the image and get 70.00% of the weight of all "
        "maps, more than their share."
    )


def test_maps_tell_of_the_digit_that_is_said_however_many_patches_it_has() -> None:
    for side in (1, 2):  # patches along a digit
        said = [
            _map("a.0", [[1.5, 0.5] * side] * side, 0.5, 0.7, on_digit=0.75),
            _map("a.0", [[0.9, 1.1] * side] * side, 0.6, 0.7, on_digit=0.55),
        ]
        assert map_signs([_image([said], 28, 56)]) == (
            "Good: weight on the digit that is being said. Bad: one even colour, or weight on others. Here "
            "the digit that is being said gets 65.00% of the weight of its maps, where an even map gives "
            "it 50.00%."
        )


def test_maps_of_whole_digits_without_one_that_is_said_tell_of_a_choice() -> None:
    maps = [_map("a.0", [[1.5, 0.5]], 0.5, 0.7), _map("a.1", [[0.9, 1.1]], 0.6, 0.7)]
    assert map_signs([_image([maps], 28, 56)]).endswith(
        "Here they go from 0.5 to 1.5 times even attention."
    )


def test_a_map_of_one_patch_has_nothing_to_choose() -> None:
    images = [_image([[_map("a.0", [[1.0]], 0.0, 0.0)]], 28, 28)]
    assert sharpness(images).endswith("The highest weight is 1.0 times even.")
    assert map_signs(images).endswith("Here they go from 1.0 to 1.0 times even attention.")


@pytest.mark.parametrize(
    ("scores", "images", "told"),
    [
        ([0.1, 0.7, -3.0], False, "When tokens are taken away one by one, token y (at 2) is missed most."),
        ([0.1, 0.7, -3.0], True, "When patches are taken away one by one, patch y is missed most."),
        ([-0.1, 0.0, -3.0], False, "Whichever token is taken away alone, the answer is no less sure."),
        ([-0.1, -0.2, -3.0], True, "Whichever patch is taken away alone, the answer is no less sure."),
    ],
)
def test_the_part_that_is_missed_most(scores: list[float], images: bool, told: str) -> None:
    assert most_missed(["x", "y", "z"], scores, images=images) == told


def test_offers_are_made_only_where_they_can_be_kept() -> None:
    whole: dict[str, Any] = {
        "split": "test",
        "examples": 1000,
        "exact_match": 0.5,
        "exact_match_interval": (0.25, 0.75),
        "token_accuracy": 0.5,
        "teacher_forced": Forced(0.5, 0.5, 0.1),
        "by_stratum": [],
        "by_place": [],
    }
    sums = AdditionEvaluation(**whole, by_chain=[], by_column=[])
    told, good, offers = proof(sums, None, shipped=False)
    assert (told, good) == ("50.00% of 1,000 test sums correct. Not verified yet.", False)
    assert offers == ["attnlab verify decodes every pair of operands; write this page again after it."]
    assert proof(sums, None, shipped=True) == (told, False, [])
    lists = SortingEvaluation(
        **whole, right_of={}, balanced_accuracy=0.5, answers={}, loss=0.1, negatives="swap", by_length=[]
    )
    lengths = Lengths(run="run", trained=Trained(8, 16, "swap"), rows=[], constant=["it stays"])
    first = (
        "95% interval 25.00% to 75.00%; half of the lists are sorted, the others were put out of order by "
        "swap."
    )
    assert notes(lists, None, shipped=True) == [first]
    assert notes(lists, None, shipped=False) == [
        first,
        "attnlab lengths measures lengths that were never learned from; write this page again after it.",
    ]
    assert notes(lists, lengths, shipped=True) == [first, "it stays."]
