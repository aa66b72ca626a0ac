"""Studies: what they may be, what they find in a pool of runs, and how that is told."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_studies
from attnlab.analysis.statistics import bootstrap_interval
from attnlab.errors import LabError, RunError, SpecError, StorageError
from attnlab.problems.addition.studies import CORRECT
from attnlab.results import Table
from attnlab.runs import RunFolder, create_run
from attnlab.sets import Examples
from attnlab.specs import Spec, to_json, with_settings
from attnlab.storage import as_json
from attnlab.studies import EXACT_MATCH, STEPS_TO_99, Measure, Study
from attnlab.studies.jobs import keep_failure, run_name
from attnlab.studies.outcome import Failed, RunCount, StudyResult, collect, read_results
from attnlab.studies.running import check_pool, open_jobs
from attnlab.studies.study import find_study, read_catalogue, steps_to_target
from attnlab.tables.study import markdown, notes, show_difference, show_value, study_tables
from attnlab.training import Trainer
from tiny import TINY, tiny
from tiny_digits import squares_spec

STUDIES = read_catalogue()
TINY_STUDIES = Path(tiny_studies.__file__)


def study(**changes: Any) -> Study:
    plan: dict[str, Any] = {
        "name": "colours",
        "question": "Which is best?",
        "variants": {"red": TINY, "blue": tiny(lr=0.02)},
        "measures": (EXACT_MATCH, STEPS_TO_99),
        "seeds": 3,
        "baseline": "red",
    }
    return Study(**{**plan, **changes})


def windows(*exact: float) -> list[dict[str, Any]]:
    """Lines of metrics, one window every ten steps."""
    line = {"event": "step", "epoch": 0.5, "lr": 0.1, "loss": 1.0, "seconds": 0.1}
    return [{**line, "step": 10 * place, "exact_match": x} for place, x in enumerate(exact, start=1)]


def finish(
    pool: Path, spec: Spec, exact: float | None, reached: int = 0, commit: str | None = "abc"
) -> RunFolder:
    """A run as if it had been trained: ``exact`` of the test is right, 99% came with window ``reached``."""
    run = create_run(pool / run_name(spec), spec)
    lines = windows(*[0.0] * max(0, reached - 10), *[1.0] * 10) if reached else windows(*[0.5] * 12)
    log = "".join(json.dumps(line) + "\n" for line in lines).encode()
    ended = {"steps": 9, "epochs": 2, "seconds": 1.5 + spec.seed, "parameters": 7}
    summary = {**ended, "valid": {"loss": 1.0, "exact_match": 0.5}}
    environment = as_json({"commit": commit})
    run.write({"environment.json": environment, "metrics.jsonl": log, "summary.json": as_json(summary)})
    if exact is not None:
        run.keep_analysis("evaluate-test", {"exact_match": exact})
    return run


def fail(pool: Path, spec: Spec, error: str, *, final: bool = True) -> None:
    keep_failure(create_run(pool / run_name(spec), spec), error, final=final)


def finish_all(plan: Study, pool: Path, exact: dict[str, Sequence[float | None]]) -> None:
    for variant, values in exact.items():
        for seed, value in zip(plan.seed_list, values, strict=True):
            if value is not None:
                finish(pool, plan.spec(variant, seed), value)


# What a study may be


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": "Two Words"}, "study name 'Two Words' must be small letters, digits and hyphens"),
        ({"name": ""}, "study name '' must be small letters, digits and hyphens"),
        ({"name": "../up"}, "study name '../up' must be small letters, digits and hyphens"),
        ({"name": "-x"}, "study name '-x' must be small letters, digits and hyphens"),
        ({"variants": {}}, "study colours must have at least one variant and one measure"),
        ({"measures": ()}, "study colours must have at least one variant and one measure"),
        ({"baseline": "green"}, "study colours has no variant 'green' to compare with"),
        ({"seeds": 0}, "study colours has 0 seeds, but it must have at least 1"),
        ({"seeds": -1}, "study colours has -1 seeds, but it must have at least 1"),
    ],
)
def test_a_study_refuses(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as error:
        study(**changes)
    assert str(error.value) == text


def test_a_study_is_every_variant_with_every_seed_seed_by_seed() -> None:
    plan = study(seeds=2, first_seed=5)
    assert [(name, seed) for name, seed, _ in plan.specs()] == [
        ("red", 5),
        ("blue", 5),
        ("red", 6),
        ("blue", 6),
    ]
    for name, seed, spec in plan.specs():
        wanted = plan.variants[name]
        assert spec == replace(wanted, seed=seed, training=replace(wanted.training, threads=1))


def test_analyses_are_those_that_measures_need_once_each() -> None:
    assert study(measures=(STEPS_TO_99,)).analyses == ()
    twice = replace(EXACT_MATCH, name="again")
    assert study(measures=(CORRECT, EXACT_MATCH, STEPS_TO_99, twice)).analyses == (
        "verify",
        "evaluate-test",
    )


@pytest.mark.parametrize("plan", STUDIES.values(), ids=STUDIES.keys())
def test_every_run_of_every_study_has_one_thread(plan: Study) -> None:
    assert {spec.training.threads for _, _, spec in plan.specs()} == {1}
    assert len({run_name(spec) for _, _, spec in plan.specs()}) == plan.seeds * len(plan.variants)


@pytest.mark.parametrize("name", ["addition-seeds", "addition-positions"])
def test_variants_that_are_compared_have_the_same_task(name: str) -> None:
    for seed in (0, 4):
        assert len({STUDIES[name].spec(v, seed).task for v in STUDIES[name].variants}) == 1


def test_two_studies_share_the_runs_of_one_spec() -> None:
    seeds, positions = STUDIES["addition-seeds"], STUDIES["addition-positions"]
    for seed in seeds.seed_list:
        assert run_name(seeds.spec("default", seed)) == run_name(positions.spec("learned", seed))
    shared = {run_name(s) for *_, s in seeds.specs()} & {run_name(s) for *_, s in positions.specs()}
    assert len(shared) == seeds.seeds


def batches(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Every batch of a whole training, in order."""
    seen, update = list[Tensor](), Trainer.update

    def watched(self: Trainer, batch: Examples) -> None:
        seen.append(batch.inputs[0].clone())
        update(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", watched)
        Trainer(spec).train()
    return seen


def test_variants_share_examples_and_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = with_settings(TINY, {"model.width": 12, "model.norm": "post"})
    plan = study(variants={"red": TINY, "blue": wide})
    data = [Trainer(plan.spec(name, 7)).data for name in plan.variants]
    for split in ("train", "valid", "test"):
        red, blue = (getattr(splits, split) for splits in data)
        assert torch.equal(red.targets, blue.targets)
        assert all(torch.equal(a, b) for a, b in zip(red.inputs, blue.inputs, strict=True))
    red_order, blue_order, other_order = (
        torch.cat(batches(spec, monkeypatch))
        for spec in (plan.spec("red", 7), plan.spec("blue", 7), plan.spec("red", 8))
    )
    assert torch.equal(red_order, blue_order)
    assert not torch.equal(red_order, other_order)
    assert not torch.equal(red_order[:23], red_order[23:46])  # another order in every epoch
    assert sorted(red_order[:23].tolist()) == sorted(red_order[23:46].tolist())


# Measures


@pytest.mark.parametrize(
    ("exact", "step"),
    [
        ([], None),
        ([1.0] * 9, None),
        ([1.0] * 10, 100),
        ([0.0] * 3 + [1.0] * 10, 130),
        ([1.0] * 9 + [0.9] + [0.0] * 5, 100),  # 9.9 of 10
        ([1.0] * 9 + [0.89] + [0.0] * 5, None),
        ([1.0] * 5 + [0.0] + [1.0] * 11, 160),
        ([1.0] * 10 + [0.0] * 10, 100),
    ],
)
def test_steps_to_the_target(exact: list[float], step: int | None, tmp_path: Path) -> None:
    run = finish(tmp_path, TINY, None)
    epoch = {"event": "epoch", "epoch": 1, "step": 5, "loss": 1.0, "valid_loss": 1.0}
    lines = [
        *windows(*exact),
        {**epoch, **dict.fromkeys(("valid_token_accuracy", "valid_exact_match", "seconds"), 1.0)},
    ]
    run.write({"metrics.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode()})
    assert steps_to_target(run) == step


def test_measures_read_what_analyses_have_kept(tmp_path: Path) -> None:
    run = finish(tmp_path, TINY, 0.25)
    run.keep_analysis("verify", {"correct": 999_983})
    assert EXACT_MATCH.read(run) == 0.25
    assert CORRECT.read(run) == 999_983


@pytest.mark.parametrize(("measure", "name"), [(EXACT_MATCH, "evaluate-test"), (CORRECT, "verify")])
def test_a_measure_without_its_analysis(measure: Measure, name: str, tmp_path: Path) -> None:
    run = finish(tmp_path, TINY, None)
    with pytest.raises(RunError, match=f"^run .* has no analysis '{name}'$"):
        measure.read(run)


# What is still to do


def test_open_jobs_are_those_without_an_end(tmp_path: Path) -> None:
    plan = study(seeds=7, variants={"red": TINY}, measures=(EXACT_MATCH,))
    finish(tmp_path, plan.spec("red", 0), 0.5)
    finish(tmp_path, plan.spec("red", 1), None)  # trained, but not analysed
    fail(tmp_path, plan.spec("red", 2), "the loss became nan", final=True)
    fail(tmp_path, plan.spec("red", 3), "no memory", final=False)
    create_run(tmp_path / run_name(plan.spec("red", 4)), plan.spec("red", 4))
    (tmp_path / run_name(plan.spec("red", 5))).mkdir()
    jobs = open_jobs(plan, tmp_path, tracks=("wandb",))
    assert [job.spec.seed for job in jobs.values()] == [1, 3, 4, 5, 6]
    assert [job.spec.seed for job in open_jobs(plan, tmp_path, retry=True).values()] == [1, 2, 3, 4, 5, 6]
    for name, job in jobs.items():
        assert (job.name, job.analyses, job.asks, job.tracks) == (
            name,
            ("evaluate-test",),
            False,
            ("wandb",),
        )


def test_a_pool_is_a_folder(tmp_path: Path) -> None:
    check_pool(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"^.*/file is not a folder; choose another folder for pool$"):
        check_pool(tmp_path / "file")
    with pytest.raises(StorageError, match=r"^cannot write .*/file/pool: not a directory"):
        check_pool(tmp_path / "file" / "pool")


# What was found


def test_a_result_holds_every_value_and_where_it_came_from(tmp_path: Path) -> None:
    plan = study(first_seed=4)
    for seed, exact, reached in ((4, 0.5, 10), (5, 0.25, 13), (6, 1.0, 0)):
        finish(tmp_path, plan.spec("red", seed), exact, reached, commit="abc")
    for seed, exact in ((4, 0.75), (5, 0.75), (6, 0.75)):
        finish(tmp_path, plan.spec("blue", seed), exact, 11, commit="abc" if seed == 4 else None)
    found = collect(plan, tmp_path)
    result = found.to_json()
    assert StudyResult.from_json(json.loads(json.dumps(result))) == found
    told = ("format", "study", "question", "command", "seeds", "baseline", "complete", "runs", "commits")
    assert [result[key] for key in told] == [
        1, "colours", "Which is best?", "attnlab study run colours --seeds 3", [4, 5, 6], "red", True,
        {"finished": 6, "wanted": 6}, ["abc", "unknown"],
    ]  # fmt: skip
    assert [measure["name"] for measure in result["measures"]] == ["exact_match", "steps_to_99"]
    assert result["timings"] == {"red": [5.5, 6.5, 7.5], "blue": [5.5, 6.5, 7.5]}
    red, blue = result["variants"]
    assert (red["name"], blue["name"]) == ("red", "blue")
    spec = to_json(plan.spec("blue", 4))
    assert blue["spec"] == {key: spec[key] for key in ("task", "model", "training")}
    assert blue["runs"] == [run_name(plan.spec("blue", seed)) for seed in (4, 5, 6)]
    assert red["measures"]["exact_match"]["values"] == [0.5, 0.25, 1.0]
    assert red["measures"]["exact_match"]["mean"] == 1.75 / 3
    assert red["measures"]["exact_match"]["interval"] == list(bootstrap_interval([0.5, 0.25, 1.0]) or ())
    assert red["measures"]["steps_to_99"]["values"] == [100, 130, None]
    assert red["measures"]["steps_to_99"]["n"] == 2
    assert blue["measures"]["steps_to_99"] == {
        "values": [110, 110, 110], "n": 3, "mean": 110, "interval": [110, 110], "anecdotal": False,
    }  # fmt: skip
    exact, steps = result["differences"]
    assert (exact["variant"], exact["measure"]) == ("blue", "exact_match")
    assert exact["differences"] == [0.25, 0.5, -0.25]
    assert exact["p"] == exact["p_holm"] == 0.75  # 6 of 8 patterns of signs give a sum of at least 0.5
    assert steps["differences"] == [10, -20, None]
    assert (steps["n"], steps["mean"]) == (2, -5)


def test_differences_are_paired_and_adjusted_within_a_measure(tmp_path: Path) -> None:
    variants = {
        name: tiny(lr=lr) for name, lr in zip(("base", "b", "c", "d"), (0.1, 0.2, 0.3, 0.4), strict=True)
    }
    plan = study(variants=variants, baseline="base", seeds=6)
    base = [0.25, 0.5, 0.125, 0.25, 0.5, 0.375]
    finish_all(plan, tmp_path, {"base": base, "b": [x + 0.25 for x in base]})
    finish_all(plan, tmp_path, {"c": [x + 0.5 if seed != 2 else None for seed, x in enumerate(base)]})
    finish_all(plan, tmp_path, {"d": [x + (0.125 if seed % 2 else -0.125) for seed, x in enumerate(base)]})
    fail(tmp_path, plan.spec("c", 2), "the loss became nan")
    result = collect(plan, tmp_path)
    assert result.complete
    rows = {row.variant: row for row in result.differences if row.measure == "exact_match"}
    assert [rows[name].n for name in "bcd"] == [6, 5, 6]
    assert [rows[name].p for name in "bcd"] == [2 / 2**6, 2 / 2**5, 1.0]
    assert [rows[name].p_holm for name in "bcd"] == [3 * 2 / 2**6, 2 * 2 / 2**5, 1.0]
    assert rows["b"].interval == (0.25, 0.25)
    assert rows["c"].differences == [0.5, 0.5, None, 0.5, 0.5, 0.5]
    never = [row for row in result.differences if row.measure == "steps_to_99"]
    assert [(row.n, row.mean, row.p, row.p_holm) for row in never] == [(0, None, None, None)] * 3


def test_what_failed_and_what_is_missing(tmp_path: Path) -> None:
    plan = study(seeds=3)
    finish_all(plan, tmp_path, {"red": [0.5, 0.5, 0.5], "blue": [0.75, None, None]})
    fail(tmp_path, plan.spec("blue", 1), "no memory", final=False)
    result = collect(plan, tmp_path)
    blue = result.variants[1]
    assert (result.complete, result.runs) == (False, RunCount(4, 6))
    assert blue.measures["exact_match"].values == [0.75, None, None]
    assert blue.measures["exact_match"].anecdotal
    assert blue.failed == [Failed(1, "no memory")]
    assert result.timings["blue"] == [1.5, None, None]
    assert result.variants[0].failed == []
    assert notes(result)[0] == "Unfinished: 4 of 6 runs."
    assert notes(result)[-1] == "blue, seed 1 failed: no memory"
    (tmp_path / run_name(plan.spec("blue", 2))).mkdir()
    assert not collect(plan, tmp_path).complete
    fail(tmp_path, plan.spec("blue", 2), "the loss became nan")
    whole = collect(plan, tmp_path)
    assert whole.complete
    assert not any(note.startswith("Unfinished") for note in notes(whole))
    (tmp_path / run_name(plan.spec("blue", 2)) / "error.json").write_text("{}")
    assert notes(collect(plan, tmp_path))[-1] == "blue, seed 2 failed: error.json cannot be read"


def test_an_earlier_failure_of_a_finished_run_is_forgotten(tmp_path: Path) -> None:
    plan = study(seeds=1, variants={"red": TINY}, measures=(EXACT_MATCH,))
    keep_failure(finish(tmp_path, plan.spec("red", 0), 0.5), "no memory", final=False)
    result = collect(plan, tmp_path)
    assert result.variants[0].failed == []
    assert result.variants[0].measures["exact_match"].values == [0.5]


def test_an_empty_pool_gives_an_empty_result(tmp_path: Path) -> None:
    result = collect(study(), tmp_path / "nowhere")
    assert (result.complete, result.runs, result.commits) == (False, RunCount(0, 6), [])
    assert [row[1:] for table in study_tables(result)[:2] for row in table.rows] == [
        ("-", "-", "0", *"---")
    ] * 4
    assert not (tmp_path / "nowhere").exists()


# How it is told


def small_result(pool: Path, **changes: Any) -> StudyResult:
    plan = study(seeds=2, variants={"red|x": TINY, "blue": tiny(lr=0.02)}, baseline="red|x", **changes)
    for (name, _, spec), reached in zip(plan.specs(), (10, 11, 12, 0), strict=True):
        finish(pool, spec, 0.5 if name == "blue" else 0.25, reached)
    return collect(plan, pool)


SMALL = r"""**exact match on test examples**

| variant | mean | 95% interval | n | seed 0 | seed 1 |
| --- | --- | --- | --- | --- | --- |
| red\|x | 25.00% | 25.00% to 25.00% | 2 | 25.00% | 25.00% |
| blue | 50.00% | 50.00% to 50.00% | 2 | 50.00% | 50.00% |

**steps to 99% exact match**

| variant | mean | 95% interval | n | seed 0 | seed 1 |
| --- | --- | --- | --- | --- | --- |
| red\|x | 110 | 100 to 120 | 2 | 100 | 120 |
| blue | 110 (anecdotal) | - | 1 | 110 | - |

**paired differences from red|x**

| variant: measure | mean difference | 95% interval | n | p (Holm) |
| --- | --- | --- | --- | --- |
| blue: exact match on test examples | +25.00 points | +25.00 points to +25.00 points | 2 | 0.5 |
| blue: steps to 99% exact match | +10.0 | - | 1 | - |

Intervals: 95%, bootstrap over seeds (BCa). p: exact sign-flip test of the paired differences, \
Holm-adjusted within a measure; with 2 seeds it cannot fall below 0.5 before adjusting.
""".replace("\\\n", "")


def test_a_result_as_markdown(tmp_path: Path) -> None:
    assert markdown(small_result(tmp_path)) == SMALL


def test_without_a_baseline_there_are_no_differences(tmp_path: Path) -> None:
    plan = study(baseline=None, seeds=2)
    finish_all(plan, tmp_path, {"red": [0.5, 0.75], "blue": [0.5, 0.5]})
    result = collect(plan, tmp_path)
    assert result.differences == []
    assert [table.title for table in study_tables(result)] == [
        "exact match on test examples",
        "steps to 99% exact match",
    ]
    assert notes(result) == ["Intervals: 95%, bootstrap over seeds (BCa)."]


def test_one_seed_is_anecdotal(tmp_path: Path) -> None:
    plan = study(seeds=1)
    finish_all(plan, tmp_path, {"red": [0.5], "blue": [0.75]})
    result = collect(plan, tmp_path)
    exact, _, differences = study_tables(result)
    assert exact.rows[0] == ("red", "50.00% (anecdotal)", "-", "1", "50.00%")
    assert differences.rows[0] == ("blue: exact match on test examples", "+25.00 points", "-", "1", "-")
    assert notes(result) == ["One seed is anecdotal: it says nothing about another seed."]


def test_nothing_leaves_its_cell() -> None:
    table = Table("t", ("a|b", "c"), (("1|2", "x\ny"), ("||", "")))
    assert table.to_markdown().split("\n") == [
        r"| a\|b | c |",
        "| --- | --- |",
        r"| 1\|2 | x y |",
        r"| \|\| |  |",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "share", "-"),
        (0.5, "share", "50.00%"),
        (0.999999, "share", ">99.99%"),
        (1.0, "share", "100.00%"),
        (1e6, "count", "1,000,000"),
        (999_999.6, "count", "999,999.6"),
        (1234.5, "steps", "1,234.5"),
        (0.0, "steps", "0"),
        (float("inf"), "steps", "inf"),
        (float("nan"), "count", "nan"),
    ],
)
def test_values_for_people(value: float | None, unit: str, text: str) -> None:
    assert show_value(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "share", "-"),
        (-0.125, "share", "-12.50 points"),
        (0.0, "count", "+0.0"),
        (-1234.0, "steps", "-1,234.0"),
    ],
)
def test_differences_for_people(value: float | None, unit: str, text: str) -> None:
    assert show_difference(value, unit) == text


def test_results_are_a_folder_that_can_be_read_again(tmp_path: Path) -> None:
    result = small_result(tmp_path / "pool")
    result.save(tmp_path / "results" / "colours")
    assert read_results(tmp_path / "results" / "colours") == result
    folder = tmp_path / "results" / "colours"
    assert sorted(path.name for path in folder.iterdir()) == ["study.json", "study.md", "study.svg"]
    assert (folder / "study.md").read_text() == f"# colours\n\nWhich is best?\n\n{SMALL}"
    assert "red|x" in (folder / "study.svg").read_text()
    assert read_results(tmp_path) is None


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda _: "{", r"study\.json is not the result of a study \(Expecting property name"),
        (lambda _: "[]", r"study\.json has format None, but this version of attnlab reads format 1"),
        (lambda _: "{}", r"study\.json has format None, but this version of attnlab reads format 1"),
        (
            lambda result: json.dumps({**result, "format": 99}),
            r"study\.json has format 99, but this version of attnlab reads format 1; "
            "run the study again to write a new one$",
        ),
        (
            lambda result: json.dumps({k: v for k, v in result.items() if k not in ("seeds", "variants")}),
            r"study\.json is damaged: it has no 'seeds', which it needs$",
        ),
        (
            lambda _: "[" * 100_000,
            r"study\.json is not the result of a study \(it nests more than 100 levels deep",
        ),
        *(
            (lambda result, key=key, value=value: json.dumps({**result, key: value}), text)
            for key, value, text in (
                ("baseline", "x", "damaged: it.baseline is 'x', but it must be the name of a variant$"),
                ("timings", {}, r"damaged: it.timings is \[\], but it must be of "),
                ("seeds", [0] * 99, r"damaged: it.variants\[0\].* is \[.*\], but it must be a list of 99"),
                (
                    "measures",
                    [],
                    r"damaged: it.variants\[0\].measures is \['.*, but it must be of nothing$",
                ),
            )
        ),
    ],
)
def test_damaged_results(damage: Callable[[dict[str, Any]], str], text: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(damage(collect(study(), tmp_path).to_json()))
    with pytest.raises(RunError, match=text):
        read_results(tmp_path)


# The catalogue


def test_a_study_is_found_by_its_name() -> None:
    assert find_study("addition-order", STUDIES).name == "addition-order"
    with pytest.raises(
        SpecError, match=r"^unknown study 'addition-odrer'; did you mean 'addition-order'\?$"
    ):
        find_study("addition-odrer", STUDIES)
    with pytest.raises(SpecError, match=r"^unknown study 'zzz'; known: addition-length, addition-"):
        find_study("zzz", STUDIES)


def test_ours_are_there_without_a_file_and_cannot_be_changed_by_accident() -> None:
    found = read_catalogue(None)
    assert found == STUDIES
    found.clear()
    assert read_catalogue(None) == STUDIES


def test_a_file_adds_studies_and_measures_of_its_own(tmp_path: Path) -> None:
    found = read_catalogue(TINY_STUDIES)
    assert list(found) == [*STUDIES, *(added.name for added in tiny_studies.STUDIES)]
    own = found["tiny"].measures[1]
    run = finish(tmp_path, TINY, None)
    run.write(
        {
            "summary.json": as_json(
                {**(run.summary() or {}), "valid": {"token_accuracy": 0.375, "exact_match": 0.25}}
            )
        }
    )
    assert (own.name, own.read(run)) == ("token_accuracy", 0.375)


def test_a_file_may_replace_a_study(tmp_path: Path) -> None:
    text = TINY_STUDIES.read_text() + "\nSTUDIES = (replace(STUDIES[0], name='addition-seeds'),)"
    (tmp_path / "mine.py").write_text(text)
    found = read_catalogue(tmp_path / "mine.py")
    assert list(found) == list(STUDIES)
    assert found["addition-seeds"].question == "Does anything work?"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 / 0", r"^catalogue .*/c\.py cannot be run \(ZeroDivisionError: division by zero\)$"),
        ("def", r"^catalogue .*/c\.py cannot be run \(SyntaxError: "),
        ("import sys; sys.exit(3)", r"^catalogue .*/c\.py cannot be run \(SystemExit: 3\)$"),
        ("import no_such_thing", r"^catalogue .*/c\.py cannot be run \(ModuleNotFoundError: No module"),
        ("", r"^catalogue .*/c\.py must define STUDIES, a list of attnlab\.studies\.Study$"),
        ("STUDIES = {}", r"^catalogue .*/c\.py must define STUDIES, a list"),
        ("STUDIES = [1]", r"^catalogue .*/c\.py must define STUDIES, a list"),
        (
            "from attnlab.presets import preset\nfrom attnlab.specs import with_settings\n"
            "with_settings(preset('addition', 'default'), {'seed': -1})",
            "^seed is -1, but it must be from 0 to 2147483647$",
        ),
    ],
)
def test_a_file_that_is_no_catalogue(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "c.py").write_text(text)
    with pytest.raises(SpecError, match=complaint):
        read_catalogue(tmp_path / "c.py")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"nowhere\.py cannot be run \(FileNotFoundError: .*nowhere\.py'\)$"
    ):
        read_catalogue(tmp_path / "nowhere.py")


def test_a_relative_folder_of_images_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs go by the hash of their spec: it must not depend on where a command was started."""
    spec = squares_spec(Path("squares"))
    monkeypatch.chdir(tmp_path)
    named = study(variants={"red": spec}, baseline=None)
    absolute = study(variants={"red": squares_spec(tmp_path / "squares")}, baseline=None)
    assert named.spec("red", 1).task.directory == str(tmp_path / "squares")  # type: ignore[attr-defined]
    assert list(open_jobs(named, tmp_path)) == list(open_jobs(absolute, tmp_path))
