"""Heads matched by what they do: shuffled heads are found again, and roles have their thresholds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.analysis.analyses import analyse_run
from attnlab.analysis.matching import (
    Behaviour,
    HeadBehaviour,
    assign,
    between,
    count_roles,
    dealt,
    match_heads,
    roles_of,
    silhouette,
    weight,
)
from attnlab.analysis.statistics import RoleCount
from attnlab.errors import LabError
from attnlab.figures.patching import draw_grids
from attnlab.figures.studies import matched_data
from attnlab.runs import RunFolder
from attnlab.studies.outcome import compare_heads
from attnlab.studies.study import find_study, read_catalogue
from attnlab.tables.study import markdown, study_tables
from made_up_results import study_result
from planted import ALIGN, CARRY, COPY, OWN, planted_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    made = planted_run(tmp_path_factory.mktemp("planted") / "adder", carries=True)
    analyse_run(made, "behaviour")
    return made


def behaviour(run: RunFolder) -> Behaviour:
    found = run.kept("behaviour", Behaviour)
    assert found is not None
    return found


def renamed(found: Behaviour, seed: int) -> tuple[Behaviour, dict[str, str]]:
    """The same heads under names of others of their kind, with a little noise; and who is who."""
    generator = torch.Generator().manual_seed(seed)
    rows, was = [], {}
    for kind in dict.fromkeys(row.kind for row in found.heads):
        mine = [row for row in found.heads if row.kind == kind]
        order = torch.randperm(len(mine), generator=generator).tolist()
        for row, other in zip(mine, order, strict=True):
            moved = {
                part: {
                    name: value + 0.01 * float(torch.randn((), generator=generator))
                    for name, value in mine[other].parts[part].items()
                }
                for part in ("looks", "costs", "carries")
            }
            rows.append(HeadBehaviour(row.head, kind, **moved))
            was[row.head] = mine[other].head
    return replace(found, heads=rows), was


def test_the_behaviour_of_planted_heads_is_what_was_planted(run: RunFolder) -> None:
    found = {row.head: row for row in behaviour(run).heads}
    assert len(found) == 18
    assert found[CARRY].carries == pytest.approx({"10^1": 1, "10^2": 1}, abs=1e-3)
    assert found[OWN].carries == pytest.approx({"10^1": 0, "10^2": 0}, abs=1e-3)
    assert found[ALIGN].looks["column at 10^0"] == pytest.approx(1, abs=1e-3)
    assert found[CARRY].looks["column at 10^1"] == pytest.approx(0, abs=1e-3)
    assert found["encoder.1.self.0"].costs == dict.fromkeys(found["encoder.1.self.0"].costs, 0)
    assert found[COPY].costs["all examples"] > 0.5
    assert not any(name.endswith("end") for row in found.values() for name in row.looks)
    assert list(found[COPY].costs) == [
        "all examples", "carry chain 0", "carry chain 1", "carry chain 2", "10^0", "10^1", "10^2",
    ]  # fmt: skip


def test_planted_heads_have_the_roles_that_were_planted(run: RunFolder) -> None:
    roles = {row.head: roles_of(row) for row in behaviour(run).heads}
    assert roles[COPY] == ["own column", "own token", "brings the carry", "is missed"]
    assert roles[ALIGN] == ["own column", "is missed"]
    assert roles[CARRY] == ["column below", "brings the carry", "is missed"]
    assert roles[OWN] == ["own token", "is missed"]
    counted = {(row.kind, row.role): row for row in count_roles({7: behaviour(run)})}
    assert counted["decoder cross", "column below"] == RoleCount("decoder cross", "column below", [1], 1)
    assert counted["encoder self", "is missed"].heads == [1]
    assert counted["decoder cross", "none of these"].heads == [4]


def test_an_analysis_that_is_kept_is_not_made_again(run: RunFolder) -> None:
    kept = behaviour(run)
    analyse_run(run, "behaviour")
    assert run.kept("behaviour", Behaviour) == kept


def test_heads_under_other_names_are_found_again(run: RunFolder) -> None:
    both = {seed: renamed(behaviour(run), seed) for seed in range(1, 8)}
    runs = {seed: found for seed, (found, _) in both.items()}
    for kind in match_heads(runs):
        distance = kind.distance
        assert distance.matched < 0.05
        assert distance.matched < min(distance.same_name, distance.dealt)
        assert distance.p < 0.05
        groups = [
            [was[head] for (_, was), head in zip(both.values(), group.heads, strict=True)]
            for group in kind.groups
        ]
        active = [members for members in groups if set(members) & {COPY, ALIGN, CARRY, OWN}]
        assert all(len(set(members)) == 1 for members in active)  # the idle heads are all alike
        for members, group in zip(groups, kind.groups, strict=True):
            if members[0] in (CARRY, ALIGN):
                assert group.silhouette > 0.5
                assert group.roles["is missed"] == 7
    assert sum(len(kind.groups) for kind in match_heads(runs)) == 18


def test_assignment_undoes_a_shuffle() -> None:
    torch.manual_seed(0)
    heads = torch.randn(7, 5, dtype=torch.double)
    shuffles = torch.stack([torch.randperm(7) for _ in range(4)])
    vectors = torch.stack([heads[order] for order in shuffles])
    found = assign(vectors)
    assert found[0].tolist() == list(range(7))
    matched = vectors.gather(1, found[..., None].expand_as(vectors))
    assert torch.equal(matched, heads[shuffles[0]].expand(4, 7, 5))
    assert between(matched) == 0
    assert silhouette(matched) == pytest.approx(torch.ones(7))


def test_heads_that_are_dealt_out_at_random_match_no_better_than_by_chance() -> None:
    """Every run has a mixture of two sorts of heads, not one of each."""
    torch.manual_seed(1)
    sorts = torch.randint(2, (5, 6, 1)).double()
    vectors = sorts + 0.01 * torch.randn(5, 6, 3, dtype=torch.double)
    order = assign(vectors)
    matched = between(vectors.gather(1, order[..., None].expand_as(vectors)))
    distance, p = dealt(vectors, matched)
    assert 0.05 < p < 1
    assert distance == pytest.approx(matched, rel=0.5)


def test_silhouette_by_hand() -> None:
    """One group lies at 0 and 1, the other at 4 and 4: 1 apart and 0 apart, 4 and 3 from each other."""
    matched = torch.tensor([[[0.0], [4.0]], [[1.0], [4.0]]])
    assert silhouette(matched).tolist() == pytest.approx([((4 - 1) / 4 + (3 - 1) / 3) / 2, 1.0])
    assert silhouette(matched[:, :1]).tolist() == [0]
    assert between(matched) == 0.5


def test_weight_is_the_mean_over_places() -> None:
    looks = {"column at 10^0": 0.2, "column at 10^1": 0.6, "carry_in at 10^1": 1.0, "entropy": 0.5}
    assert weight(looks, "column") == pytest.approx(0.4)
    assert weight(looks, "carry_in") == 1
    assert weight(looks, "partner") == 0


def test_what_cannot_be_matched_is_told(run: RunFolder) -> None:
    with pytest.raises(LabError, match="there is 1 run to match heads of, but there must be at least 2"):
        match_heads({0: behaviour(run)})
    fewer = replace(behaviour(run), heads=behaviour(run).heads[1:])
    with pytest.raises(
        LabError, match=r"runs have \[5, 6\] heads of kind encoder self; only equal numbers"
    ):
        match_heads({0: behaviour(run), 1: fewer})


def test_a_study_tells_of_heads_in_tables_and_a_figure(run: RunFolder, tmp_path: Path) -> None:
    study = find_study("heads-across-seeds", read_catalogue())
    assert study.analyses == ("evaluate-test", "behaviour")
    assert replace(study, matches_heads=False).analyses == ("evaluate-test",)
    heads = compare_heads({"default": {0: run, 1: run}, "unfinished": {0: run}})
    assert [variant.variant for variant in heads] == ["default"]
    result = study_result({**RESULT, "heads": heads})
    roles, matched, distances = study_tables(result)[1:]
    assert ("decoder cross: column below", "2 of 2", "1", "1") in roles.rows
    first = next(row for row in matched.rows if row[0].startswith("decoder cross"))
    assert first == (
        "decoder cross: column below, brings the carry, is missed",
        first[1],
        "100.00%",
        "1.00",
        "1.0",
        "1.0",
    )
    assert distances.rows[0][:2] == ("encoder self", "0.000")
    result.save(tmp_path)
    assert (tmp_path / "study.md").read_text().endswith(markdown(result))
    assert (tmp_path / "heads.svg").read_text().startswith("<svg")
    assert type(result).from_json(json.loads((tmp_path / "study.json").read_text())) == result
    data = matched_data(heads[0])
    assert [panel.title for (panel,) in data.panels] == [
        "encoder self",
        "decoder self",
        "decoder cross",
    ]
    cross = data.panels[2][0]
    assert cross.rows[0] == "1.0 1.0"
    assert cross.columns[-2:] == ["carry 10^1", "carry 10^2"]
    assert cross.percent[0][-2:] == pytest.approx([100, 100], abs=0.1)
    assert len(draw_grids(data).axes) == 4


RESULT: dict[str, Any] = {
    "format": 1,
    "study": "heads-across-seeds",
    "question": "?",
    "command": "?",
    "environment": {},
    "seeds": [0, 1],
    "baseline": None,
    "complete": True,
    "runs": {"finished": 2, "wanted": 2},
    "measures": [{"name": "m", "title": "m", "unit": "share", "better": "higher"}],
    "variants": [
        {
            "name": "default",
            "failed": [],
            "measures": {
                "m": {"values": [1.0, 1.0], "n": 2, "mean": 1.0, "interval": [1.0, 1.0], "anecdotal": False}
            },
        }
    ],
    "differences": [],
}
