"""All that evaluation finds of a reader of digits: accuracy, confusions, calibration, mistakes."""

from typing import Any

from attnlab.analysis.calibration import calibrate, log_loss
from attnlab.analysis.digits import count_digits
from attnlab.analysis.evaluate import share
from attnlab.analysis.grids import count_grids, forced_grids
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.mistakes import find_mistakes
from attnlab.progress import Progress, silent
from attnlab.runs import Run
from attnlab.spec import Split


def evaluate_reader(
    reader: ImageClassifier, split: Split = "test", *, progress: Progress = silent
) -> dict[str, Any]:
    """Measure ``reader`` on a split."""
    images = reader.images(split)
    said = reader.predict_proba(images.pixels, progress=progress)
    answer = said.argmax(dim=-1)
    found: dict[str, Any]
    if reader.task.start is not None:
        found = count_grids(reader.task, images.truth, answer)
        if len(reader.members) == 1:
            model = reader.members[0].model
            found["teacher_forced"] = forced_grids(reader.task, model, seed=reader.seed, split=split)
    else:
        found = count_digits(reader.task, images.truth[:, 0], answer[:, 0])
        found |= share("accuracy", (answer == images.truth)[:, 0])
    return {
        "split": split,
        **found,
        "loss": log_loss(said, images.truth),
        "calibration": calibrate(said, images.truth),
        "mistakes": find_mistakes(reader, split, images, said),
        "classes": list(reader.task.classes),
    }


def evaluate_images(run: Run, split: Split = "test", *, progress: Progress = silent) -> dict[str, Any]:
    """Measure a run that reads images on a split and keep what was found."""
    found = {"run": run.name, **evaluate_reader(image_classifier(run), split, progress=progress)}
    run.keep_analysis(f"evaluate-{split}", found)
    return found
