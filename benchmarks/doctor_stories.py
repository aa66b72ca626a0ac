"""Four stories of models that did not work, rebuilt with their faults: what does the doctor name first?

    python benchmarks/doctor_stories.py             # some ten minutes of one core; goes on where it stopped
    python benchmarks/doctor_stories.py --stories patches --seeds 1

Each model is trained with its fault, measured as it was reported, diagnosed, and trained again with the
remedy of the first finding. ``results/doctor/stories.json`` holds the stories that are finished.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import attnlab as al  # before torch, which reads how threads wait when it is loaded

# isort: split
import torch
import tyro
from doctor_stories_adder import Recipe, Trained, train_adder

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis, Remedy
from attnlab.doctor.patient import Patient
from attnlab.doctor.remedies import cured_spec
from attnlab.doctor.searched import diagnose_search
from attnlab.errors import LabError
from attnlab.front.run import Run
from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run, describe_environment
from attnlab.sets import Examples, own_generator
from attnlab.specs import Spec, to_json, with_settings
from attnlab.storage import write_json
from attnlab.studies.outcome import read_results
from attnlab.training import train_run

Row = dict[str, Any]
REPORTED_LENGTHS = (32, 64, 128, 256)


@dataclass(frozen=True)
class Options:
    """Which stories, and where things are kept."""

    stories: tuple[str, ...] = ()
    """Which; none: all."""
    seeds: int = 3
    """So many trainings of each."""
    again: bool = False
    """Diagnose anew what was diagnosed before."""
    runs: Path = Path("runs/benchmark-doctor-stories")
    """Where the runs are kept."""
    out: Path = Path("results/doctor/stories.json")
    """The file to write."""


@dataclass(frozen=True)
class Variant:
    """One of the trainings that a story is made of; ``wanted`` are the kinds that name what is wrong."""

    spec: Any
    wanted: tuple[str, ...]
    tell: Callable[[int, Options], Row]
    """What is measured with a seed."""
    once: bool = False
    """With all seeds at once."""


def main(options: Options) -> None:
    torch.set_num_threads(1)
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name, variants in STORIES.items():
        if not options.stories or name in options.stories:
            for title, variant in variants.items():
                write_json(part_of(options, name, title), told(title, variant, options))
    found = {
        name: [read(part_of(options, name, title)) for title in variants]
        for name, variants in STORIES.items()
        if all(part_of(options, name, title).exists() for title in variants)
    }
    result = {
        "what": "models that did not work, with their faults as they were: what the doctor names first",
        "command": f"python benchmarks/doctor_stories.py --seeds {options.seeds}",
        "environment": describe_environment().to_json(),
        "seeds": list(range(options.seeds)),
        "stories": found,
    }
    write_json(options.out, result)
    for name, parts in found.items():
        for part in parts:
            print(f"{name}, {part['variant']}: named first {part['named_first']} of {len(part['rows'])}")


def part_of(options: Options, name: str, title: str) -> Path:
    return options.runs / f"{name}-{title.replace(' ', '-')}.json"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def told(title: str, variant: Variant, options: Options) -> Row:
    """All seeds of a variant, and the first one's findings in full."""
    rows, shown = [], None
    for seed in range(1 if variant.once else options.seeds):
        row = variant.tell(seed, options)
        shown = shown or row["diagnosis"]
        found = row.pop("diagnosis")["findings"]
        row |= {"first": found[0]["kind"] if found else None, "findings": [brief(each) for each in found]}
        rows.append(row)
        print(json.dumps({"variant": title} | row), file=sys.stderr, flush=True)
    return {
        "variant": title,
        "spec": variant.spec,
        "wanted": list(variant.wanted),
        "named_first": sum(row["first"] in variant.wanted for row in rows),
        "rows": rows,
        "shown": shown,
    }


def brief(finding: Row) -> Row:
    return {key: finding[key] for key in ("kind", "severity", "confidence", "text", "explained_by")}


# Trainings that are runs


def trained(spec: Spec, path: Path) -> Run | None:
    """The run at ``path``, trained to its end; None if its loss became infinite or NaN."""
    run = Run(path) if path.exists() else Run(create_run(path, spec).path)
    if run.spec() != spec:
        sys.exit(f"{path} was trained with another spec; remove it or name another folder with --runs")
    try:
        train_run(run, checkpoint_seconds=60)
    except LabError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return None
    return run


def diagnosed(run: Run, options: Options) -> Row:
    """What the doctor says, as it is kept beside the run."""
    path = run.path / "story-diagnosis.json"
    if options.again or not path.exists():
        write_json(path, diagnose(Patient(str(run.path), run=run)).to_json())
    found: Row = read(path)
    return found


Measure = Callable[[Run], Row]


def run_story(name: str, spec: Spec, measure: Measure, cures: bool, seed: int, options: Options) -> Row:
    """A run, its diagnosis, and if ``cures`` what the remedy of its first finding makes of it."""
    spec = replace(spec, seed=seed)
    run = trained(spec, options.runs / f"{name}-s{seed}")
    assert run is not None
    found = diagnosed(run, options)
    row = {"seed": seed, **measure(run), "diagnosis": found}
    settings = found["findings"][0]["remedy"]["settings"] if found["findings"] else {}
    if not settings or not cures:
        return row | {"remedy": settings}
    cured = trained(cured_spec(spec, Remedy("", settings=settings)), run.path / "cured")
    if cured is None:
        return row | {"remedy": settings}
    after = Diagnosis.from_json(diagnosed(cured, options))
    return row | {"remedy": settings, "cured": measure(cured) | {"first": next(iter(after.kinds), None)}}


def run_variant(name: str, spec: Spec, measure: Measure, *wanted: str, cures: bool = True) -> Variant:
    return Variant(to_json(spec), wanted, partial(run_story, name, spec, measure, cures))


# One head over 49 patches


PATCHES = with_settings(al.spec("digits", preset="patch-attention"), {"training.threads": 1})


def test_accuracy(run: Run) -> Row:
    return {"test accuracy": kept(run, "test accuracy", lambda: run.evaluate().exact_match)}


def kept(run: Run, name: str, measure: Callable[[], Any]) -> Any:
    """What was measured of the run, once."""
    path = run.path / f"story-{name.replace(' ', '-')}.json"
    if not path.exists():
        write_json(path, measure())
    return read(path)


# Sums without a start token


def adder_story(title: str, recipe: Recipe, seed: int, options: Options) -> Row:
    """The adder with its faults, and without them."""
    sick = adder(title, recipe, seed, options)
    healthy = adder("healthy", replace(recipe, start_token=True, zero_ignored=False), seed, options)
    row = {key: sick[key] for key in ("reported", "free", "below_thousand", "diagnosis")}
    after = healthy["diagnosis"]["findings"]
    cured = {"free": healthy["free"], "first": after[0]["kind"] if after else None}
    return {"seed": seed, **row, "cured": cured}


def adder(title: str, recipe: Recipe, seed: int, options: Options) -> Row:
    path = options.runs / f"addition-{title.replace(' ', '-')}-s{seed}.json"
    if options.again or not path.exists():
        found: Trained = train_adder(recipe, seed)
        plain = {name: getattr(found, name) for name in ("reported", "free", "below_thousand")}
        write_json(path, plain | {"diagnosis": found.diagnosis.to_json()})
    return dict(read(path))


def adder_variant(title: str, recipe: Recipe, *wanted: str) -> Variant:
    return Variant(asdict(recipe), wanted, partial(adder_story, title, recipe))


# Sortedness at chance


SORTING = with_settings(
    al.spec("sorting", preset="reference"),
    {
        **{"model.width": 64, "model.hidden": 256, "task.valid": 500, "task.test": 500},
        **{"training.epochs": 4, "training.lr": 3e-3, "training.threads": 1},
    },
)

ENCODINGS = {
    "sinusoidal": ("constant-predictor",),
    "learned": ("constant-predictor",),
    "none": ("positions-ignored", "constant-predictor"),
}


def at_lengths(run: Run) -> Row:
    """Accuracy at the lengths of training and beyond, of lists as they were drawn: by tossing a coin."""
    return {
        "test accuracy": kept(run, "test accuracy", lambda: run.evaluate().exact_match),
        "by length": kept(run, "by length", lambda: [right_of(run, length) for length in REPORTED_LENGTHS]),
    }


@torch.no_grad()
def right_of(run: Run, length: int) -> Row:
    """Of 500 lists: the accuracy, the share of unsorted ones, and of those that are called unsorted."""
    lists = tossed(run.task, length)
    parts = (lists.inputs[0][start : start + 50] for start in range(0, 500, 50))
    said = torch.cat([run.model(part).argmax(dim=-1) for part in parts])
    return {
        "length": length,
        "accuracy": (said == lists.targets).double().mean().item(),
        "unsorted": (lists.targets == 0).double().mean().item(),
        "called unsorted": (said == 0).double().mean().item(),
    }


def tossed(task: Any, length: int) -> Examples:
    """500 lists of which a coin says whether they are sorted: some out of a balanced thousand."""
    assert isinstance(task, Sorting)
    generator = own_generator(0, 5, length)
    every = task.draw(1000, length, "reference", generator)
    return every[torch.randperm(1000, generator=generator)[:500]]


# A search whose best is its last


RESULTS = Path(__file__).parents[1] / "results"
SEARCHED = "64/128, uniform 0.1, lr "


def search_story(rates: tuple[float, ...], _: int, options: Options) -> Row:
    """The study of the patches' rates as far as the report went, and what lies beyond."""
    study = read_results(RESULTS / "patch-attention")
    assert study is not None
    known = [each for each in study.variants if each.name.startswith(SEARCHED)]
    accuracy = {rate_of(each.name): each.measures["accuracy"].mean for each in known}
    tried = replace(study, variants=[each for each in known if rate_of(each.name) in rates])
    found = diagnose_search(tried).to_json()
    return {
        "seeds": study.seeds,
        "tried": {f"{rate:g}": mean for rate, mean in sorted(accuracy.items()) if rate in rates},
        "beyond": {f"{rate:g}": mean for rate, mean in sorted(accuracy.items()) if rate > max(rates)},
        "diagnosis": found,
    }


def rate_of(name: str) -> float:
    return float(name.removeprefix(SEARCHED))


RATES = (0.001, 0.003, 0.005, 0.01)
STORIES: dict[str, dict[str, Variant]] = {
    "patches": {"uniform 0.1": run_variant("patches", PATCHES, test_accuracy, "rate-too-low")},
    "addition": {
        "no start token": adder_variant(
            "no start token", Recipe(zero_ignored=False), "start-token-missing"
        ),
        "0 ignored too": adder_variant("0 ignored too", Recipe(), "start-token-missing", "answer-ignored"),
    },
    "sortedness": {
        name: run_variant(
            f"sortedness-{name}",
            with_settings(SORTING, {"model.positions": name}),
            at_lengths,
            *wanted,
            cures=name == "sinusoidal",
        )
        for name, wanted in ENCODINGS.items()
    },
    "search": {
        "rates to 0.01": Variant(
            {"study": "patch-attention", "rates": list(RATES)},
            ("optimum-at-edge",),
            partial(search_story, RATES),
            once=True,
        )
    },
}

if __name__ == "__main__":
    main(tyro.cli(Options))
