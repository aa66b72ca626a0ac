"""The studies there are. A file of your own may add to them: ``--catalogue FILE``."""

import runpy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from attnlab.errors import LabError, SpecError, nearest
from attnlab.presets import preset
from attnlab.problems.addition import Addition
from attnlab.spec import Learned, NoPositions, Rotary, Seq2SeqModel, Sinusoidal, Spec
from attnlab.studies.measures import CORRECT, EXACT_MATCH, STEPS_TO_99
from attnlab.studies.patches import PATCH_STUDIES
from attnlab.studies.reading import READING_STUDIES
from attnlab.studies.sorting import SORTING_STUDIES
from attnlab.studies.study import Study

_DEFAULT = preset("addition", "quick")  # the default of the time when these studies were made
_MODEL = _DEFAULT.model
assert isinstance(_MODEL, Seq2SeqModel)


def _small(order: str) -> Spec:
    """Two digits, width 32: a run takes a few seconds."""
    task = Addition(
        digits=2, order="least" if order == "least" else "most", train=3_000, valid=500, test=1_000
    )
    model = Seq2SeqModel(width=32, heads=2, hidden=64, positions=Learned(length=32, scale=1.0))
    return replace(
        _DEFAULT, task=task, model=model, training=replace(_DEFAULT.training, epochs=20, batch=64)
    )


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            name="addition-seeds",
            question="Does the default recipe learn every sum, whatever the seed?",
            variants={"default": _DEFAULT},
            measures=(CORRECT, EXACT_MATCH, STEPS_TO_99),
            seeds=5,
        ),
        Study(
            name="addition-recipes",
            question="How far does each recipe get, on test sums of its own kind?",
            variants={"default": _DEFAULT, "reference": preset("addition", "reference")},
            measures=(EXACT_MATCH, STEPS_TO_99),
            seeds=5,
        ),
        Study(
            name="addition-positions",
            question="Which positional encoding learns to add, and how fast?",
            variants={
                name: replace(_DEFAULT, model=replace(_MODEL, positions=positions))
                for name, positions in (
                    ("learned", _MODEL.positions),
                    ("sinusoidal", Sinusoidal()),
                    ("rotary", Rotary()),
                    ("none", NoPositions()),
                )
            },
            measures=(EXACT_MATCH, STEPS_TO_99),
            seeds=10,
            baseline="learned",
        ),
        Study(
            name="heads-across-seeds",
            question="Which heads does every seed grow, whatever their names?",
            variants={"default": _DEFAULT},
            measures=(EXACT_MATCH,),
            seeds=10,
            matches_heads=True,
        ),
        Study(
            name="addition-order",
            question="Is a sum learned faster when it starts with the ones? (two digits, a minute)",
            variants={"most first": _small("most"), "least first": _small("least")},
            measures=(EXACT_MATCH, STEPS_TO_99),
            seeds=5,
            baseline="most first",
        ),
        *PATCH_STUDIES,
        *SORTING_STUDIES,
        *READING_STUDIES,
    )
}


def find_study(name: str, studies: Mapping[str, Study]) -> Study:
    """The study ``name``, or a sentence with the nearest."""
    if name not in studies:
        raise SpecError(f"{name!r} is no study{nearest(name, studies, command='attnlab study list')}")
    return studies[name]


def read_catalogue(path: Path | None) -> dict[str, Study]:
    """Our studies, and those of the Python file ``path``, which must define ``STUDIES``."""
    if path is None:
        return dict(STUDIES)
    try:
        added = runpy.run_path(str(path)).get("STUDIES")
    except LabError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's program
        raise SpecError(f"catalogue {path} cannot be run ({type(error).__name__}: {error})") from error
    if not isinstance(added, (list, tuple)) or not all(isinstance(study, Study) for study in added):
        raise SpecError(f"catalogue {path} must define STUDIES, a list of attnlab.studies.Study")
    return {**STUDIES, **{study.name: study for study in added}}
