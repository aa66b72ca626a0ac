"""What runs that read text get wrong, and shares by group."""

import pytest
import torch

from attnlab.analysis.evaluate import Stratum, find_mistakes
from attnlab.analysis.predict import answer_all
from attnlab.figures.strata import draw_strata, strata_data
from attnlab.figures.style import to_svg
from attnlab.models import build_model
from attnlab.models.classifier import Classifier
from attnlab.models.seq2seq import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.problems.sorting import Sorting
from attnlab.specs import Seq2SeqModel, TokensModel, to_json


def test_wrong_sums_with_the_probability_of_the_whole_answer() -> None:
    task = Addition(digits=1, train=10, valid=5, test=7)
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=task.vocabulary).eval()
    assert isinstance(model, Seq2Seq)
    pairs = torch.tensor([[a, b] for a in range(7) for b in range(5)])
    found = find_mistakes(task, model, task.examples(pairs))
    emitted = answer_all(task, model, task.examples(pairs))
    wrong = (emitted != task.target(pairs)).any(dim=1)
    assert (found.examples, found.count) == (35, int(wrong.sum()))
    sure = [row.probability for row in found.worst]
    assert sure == sorted(sure, reverse=True)
    first = found.worst[0]
    a, b = map(int, first.input.split("+"))
    assert (first.truth, first.answer) == (str(a + b), task.answer(emitted[5 * a + b]))
    chance, token = 1.0, torch.tensor([[task.start]])
    for said in emitted[5 * a + b]:
        logits = model(task.source(torch.tensor([[a, b]])), token)[0, -1]
        chance *= logits.softmax(dim=0)[said].item()
        token = torch.cat((token, said[None, None]), dim=1)
    assert first.probability == pytest.approx(chance, rel=1e-4)


def test_wrong_lists() -> None:
    task = Sorting(low=3, high=5, train=10, valid=5, test=23)
    model = build_model(TokensModel(width=6, heads=3, hidden=5), vocabulary=2, tokens=Sorting.tokens).eval()
    assert isinstance(model, Classifier)
    found = find_mistakes(task, model, task.splits(0).test)
    test = task.splits(0).test
    said = model(*test.inputs)
    assert found.count == int((said.argmax(dim=1) != test.targets).sum()) > 0
    numbers = [int(sign) for sign in found.worst[0].input.split()]
    assert (found.worst[0].truth == "sorted") == (numbers == sorted(numbers))
    assert found.worst[0].answer != found.worst[0].truth
    wrong = said.softmax(dim=1).amax(dim=1)[said.argmax(dim=1) != test.targets]
    assert found.worst[0].probability == pytest.approx(wrong.max().item())


def test_shares_by_group_in_percent() -> None:
    rows = [Stratum("0,0", 7, 0.5, (0.25, 0.75)), Stratum("0,1", 11, 1.0, (0.75, 1.0))]
    data = strata_data(rows, whole=0.75, what="cell")
    assert to_json(data) == {
        "what": "cell",
        "whole": 75.0,
        "groups": ["0,0", "0,1"],
        "examples": [7, 11],
        "percent": [50.0, 100.0],
        "interval": [[25.0, 75.0], [75.0, 100.0]],
    }
    assert "100.00% of 11" in to_svg(draw_strata(data))
