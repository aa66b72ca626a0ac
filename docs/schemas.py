"""The schemas of all files that attnlab writes: ``python docs/schemas.py`` writes ``docs/schemas/``.

They are made from the dataclasses by which the files are written and read, so they cannot drift from the
code; a test holds the folder equal to them, and shipped files and those of older versions to the schemas.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.calibrate import CalibrateResult
from attnlab.analysis.compare import Comparison
from attnlab.analysis.evaluate import Evaluation
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.gradients import GradientCheck
from attnlab.analysis.heads import HeadsResult
from attnlab.analysis.image_evaluation import (
    DigitEvaluation,
    EnsembleScores,
    GridEvaluation,
    ImageEvaluation,
    ViewsScores,
)
from attnlab.analysis.image_maps import Maps
from attnlab.analysis.matching import Behaviour
from attnlab.analysis.patch.contrasts import PatchResult
from attnlab.analysis.patterns import Patterns
from attnlab.analysis.positions import PositionsResult
from attnlab.analysis.predict import Prediction
from attnlab.analysis.project.projection import ProjectedRun
from attnlab.analysis.prune.runs import PruningResult
from attnlab.analysis.samples import ShownImages
from attnlab.analysis.timelapse.runs import Timelapse
from attnlab.data.mnist import CachedData
from attnlab.data.mnist_sources import DataStatus
from attnlab.doctor.findings import Diagnosis
from attnlab.explorer.handout import Handout
from attnlab.export.runs import Export
from attnlab.problems.addition.carries import CarryResult
from attnlab.problems.addition.evaluate import AdditionEvaluation, Verification
from attnlab.problems.addition.lengths import AdditionLengths
from attnlab.problems.sorting.evaluate import SortingEvaluation
from attnlab.problems.sorting.exchanges import Falls, Margins
from attnlab.problems.sorting.lengths import Lengths
from attnlab.runs import Environment, Observed
from attnlab.runs.listing import DamagedRun, ListedRun
from attnlab.runs.machine import Machine
from attnlab.runs.manifest import Written
from attnlab.runs.records import RECORDS, Summary
from attnlab.specs import Spec
from attnlab.specs.schema import JSON, schema
from attnlab.storage import make_folder, write_text
from attnlab.studies.jobs import Failure
from attnlab.studies.outcome import StudyResult
from attnlab.studies.sweeps.parts import SweepResult
from attnlab.studies.sweeps.search import Written as WrittenSweep

FOLDER = Path(__file__).parent / "schemas"

WEIGHTS = {"weights": {"type": "string", "pattern": "^([0-9a-f]{12}|none)$"}}
"""Which weights an analysis is of."""
NAMES = {"runs": {"type": "array", "items": {"type": "string"}, "minItems": 1}}
"""The runs of an ensemble."""


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is, the classes it holds one of, and the keys it has besides."""

    title: str
    classes: tuple[Any, ...]
    extra: bool = True
    more: dict[str, JSON] | None = None

    def schema(self) -> JSON:
        return schema(*self.classes, title=self.title, extra=self.extra, more=self.more)


def analysis(name: str, *classes: Any) -> Format:
    return Format(f"analysis/{name}.json of a run", classes, more=WEIGHTS)


FORMATS = {
    "spec": Format("spec.json of a run, best.json of a sweep", (Spec,), extra=False),
    "manifest": Format("manifest.json of a run", (Written,), extra=False),
    "environment": Format("environment.json of a run", (Environment,)),
    "metrics-line": Format("a line of metrics.jsonl of a run", tuple(RECORDS.values())),
    "observed": Format("observed.json of a run", (Observed,)),
    "summary": Format("summary.json of a run", (Summary,)),
    "error": Format("error.json of a run in a pool", (Failure,)),
    "ensemble": Format("ensemble.json of an ensemble", (EnsembleScores,), more=NAMES),
    "study": Format("study.json of a study", (StudyResult,)),
    "sweep": Format("sweep.json of a sweep", (WrittenSweep,), extra=False),
    "trials": Format("trials.json of a sweep", (SweepResult,)),
    "diagnosis": Format("diagnosis.json of a doctor's page", (Diagnosis,)),
    "analysis-evaluate": analysis(
        "evaluate-SPLIT",
        *(
            AdditionEvaluation,
            SortingEvaluation,
            DigitEvaluation,
            GridEvaluation,
            ImageEvaluation,
            Evaluation,
        ),
    ),
    "analysis-views": analysis("views", ViewsScores),
    "analysis-heads": analysis("heads-SPLIT", HeadsResult),
    "analysis-ablate": analysis("ablate-SPLIT", AblationResult),
    "analysis-explain": analysis("explain-SPLIT", Judgement),
    "analysis-patch": analysis("patch", CarryResult, PatchResult),
    "analysis-prune": analysis("prune", PruningResult),
    "analysis-projection": analysis("projection-METHOD", ProjectedRun),
    "analysis-timelapse": analysis("timelapse", Timelapse),
    "analysis-behaviour": analysis("behaviour", Behaviour),
    "analysis-verify": analysis("verify", Verification),
    "analysis-lengths": analysis("lengths", AdditionLengths, Lengths),
    "analysis-margins": analysis("margins", Margins),
    "analysis-falls": analysis("falls", Falls),
    "analysis-doctor": analysis("doctor", Diagnosis),
}

PRINTED = {
    "compare": (Comparison,),
    "data-fetch": (CachedData,),
    "data-status": (DataStatus,),
    "doctor-machine": (Machine,),
    "explain": (Explanation, Judgement),
    "export": (Export,),
    "gradcheck": (GradientCheck,),
    "handout": (Handout,),
    "maps": (Maps,),
    "patterns": (Patterns,),
    "positions": (PositionsResult,),
    "calibrate": (CalibrateResult,),
    "predict": (Prediction,),
    "runs": (ListedRun, DamagedRun),
    "show": (ShownImages,),
}
"""What commands print with --json and no run keeps. Lists of predictions and runs have such entries."""
FORMATS |= {
    f"json-{name}": Format(f"attnlab {name.replace('-', ' ')} --json", classes)
    for name, classes in PRINTED.items()
}


def main() -> None:
    make_folder(FOLDER)
    for name, each in FORMATS.items():
        write_text(FOLDER / f"{name}.json", text(each.schema()))


def text(data: JSON) -> str:
    return json.dumps(data, indent=1) + "\n"


if __name__ == "__main__":
    main()
