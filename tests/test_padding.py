"""Analyses of heads do not see padding: more of it changes nothing that they find."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F

from attnlab.analysis.ablate.baselines import mean_baseline, others, recorded_z, resample_baseline
from attnlab.analysis.heads import Sums, measure_heads
from attnlab.analysis.prune.refit import refit, streams
from attnlab.analysis.subjects import Subject, subject_of
from attnlab.model import Site
from attnlab.models import Classifier, build_model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import sorting_sets
from attnlab.problems.sorting.words import CLS, PAD
from attnlab.sets import Examples
from attnlab.specs import TokensModel
from attnlab.training.probes import probe
from twins import randomise

EXAMPLES = Sorting(low=3, high=7, train=29).splits(0).train
PADDED = Examples((F.pad(EXAMPLES.inputs[0], (0, 4), value=PAD),), EXAMPLES.targets)
LISTS = [row[row != PAD] for row in EXAMPLES.inputs[0]]


def reader(window: int = 0) -> Classifier:
    model = build_model(
        TokensModel(width=6, heads=3, layers=2, hidden=5, window=window),
        vocabulary=2,
        tokens=Sorting.tokens,
    ).eval()
    randomise(model)
    return model


@pytest.mark.parametrize("by_place", [True, False])
def test_the_mean_of_z_is_that_of_real_tokens(by_place: bool) -> None:
    model = reader()
    alone = [recorded_z(model, Examples((row[None],), EXAMPLES.targets[:1])) for row in LISTS]
    found = mean_baseline(model, PADDED, by_place=by_place).values
    for path, mean in found.items():
        if by_place:
            assert mean.shape == (1, 3, 11, 2)
            for place in range(7):
                there = [z[path][0, :, place] for z in alone if z[path].shape[2] > place]
                assert torch.allclose(mean[0, :, place], torch.stack(there).mean(dim=0), atol=1e-6)
            assert (mean[0, :, 7:] == 0).all()
        else:
            tokens = torch.cat([z[path][0] for z in alone], dim=1)
            assert torch.allclose(mean[0, :, 0], tokens.mean(dim=1), atol=1e-6)


def test_z_comes_from_a_list_as_long() -> None:
    lengths = torch.tensor([len(row) for row in LISTS])
    source = others(29, 3, groups=lengths)
    assert torch.equal(lengths[source], lengths)
    assert sorted(source.tolist()) == list(range(29))
    assert (source != torch.arange(29)).all()
    assert others(3, 0, groups=torch.tensor([1, 2, 1])).tolist() == [2, 1, 0]
    model = reader()
    values = resample_baseline(model, EXAMPLES, seed=3).values
    z = recorded_z(model, EXAMPLES)
    assert all(torch.equal(values[path], z[path][source]) for path in z)


@pytest.mark.parametrize("window", [0, 2])
def test_heads_are_measured_on_real_tokens(window: int) -> None:
    model = reader(window)

    def measured(subject: Subject) -> dict[Site, dict[str, Sums]]:
        return measure_heads(subject, sorting_sets(subject.examples.inputs[0]))

    whole = measured(subject_of(Sorting(), model, PADDED))
    alone = [
        measured(subject_of(Sorting(), model, Examples((row[None],), EXAMPLES.targets[:1])))
        for row in LISTS
    ]
    for path, metrics in whole.items():
        assert {"entropy", "sparsity", "diagonal", "previous", "next", "wrong_side"} <= metrics.keys()
        for name, sums in metrics.items():
            for field in ("heads", "uniform", "rows"):
                expected = torch.cat([getattr(each[path][name], field) for each in alone])
                assert torch.allclose(getattr(sums, field), expected, atol=1e-5), (name, field)


def test_the_keys_on_the_wrong_side() -> None:
    masks = sorting_sets(torch.tensor([[CLS, 3, 5, 4, PAD]]))["encoder", "self"]
    assert masks["wrong_side"][0].nonzero().tolist() == [[2, 3], [3, 2]]
    assert masks["next"].nonzero().tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_refitting_does_not_look_at_padding() -> None:
    model = reader()
    changed = deepcopy(model)
    with torch.no_grad():
        changed.get_parameter("encoder.0.self.output.weight")[:, :2] = 0
    found = []
    for examples in (EXAMPLES, PADDED):
        cut = deepcopy(changed)
        refit(cut, examples, streams(model, examples))
        found.append(cut)
    for name, weight in found[0].state_dict().items():
        assert torch.allclose(weight, found[1].state_dict()[name], atol=1e-4), name


@pytest.mark.parametrize("window", [0, 2])
def test_the_entropy_of_training_does_not_count_padding(window: int) -> None:
    model = reader(window)
    first, second = (probe(model, examples.inputs[0]) for examples in (EXAMPLES, PADDED))
    assert first["entropy"] == pytest.approx(second["entropy"], abs=1e-5)
    with torch.no_grad():
        for block in ("0", "1"):
            model.get_parameter(f"encoder.{block}.self.query.weight").zero_()
            model.get_parameter(f"encoder.{block}.self.query.bias").zero_()
    assert probe(model, PADDED.inputs[0]) == {"entropy": pytest.approx(1, abs=1e-5)}
