"""A task in a file, and a sweep and a study of it that take seconds."""

import shutil
from pathlib import Path

REVERSE = Path(__file__).parents[1] / "examples" / "reverse.py"
SWEEP = """
method: grid
set:
  {task.train: 200, task.valid: 20, task.test: 20, training.epochs: EPOCHS, training.threads: 1,
   model.hidden: 16}
search: {model.width: [16, 32]}
"""
CATALOGUE = """
from attnlab.presets import preset
from attnlab.specs import with_settings
from attnlab.studies import EXACT_MATCH, Study
small = {"task.train": 200, "task.valid": 20, "task.test": 20, "training.epochs": 3, "training.threads": 1,
    "model.hidden": 16}
base = with_settings(preset("mine.py", "default"), small)
STUDIES = [Study(name="mine", question="Does width help?", seeds=1, measures=(EXACT_MATCH,),
    variants={str(width): with_settings(base, {"model.width": width}) for width in (16, 32)})]
"""
STUDY = ("study", "run", "mine", "--catalogue", "c.py", "--pool", "pool", "--out", "result")


def home(folder: Path, epochs: int = 3) -> Path:
    """A folder with a task, a sweep and a study of it."""
    folder.mkdir()
    shutil.copy(REVERSE, folder / "mine.py")
    (folder / "widths.yaml").write_text(SWEEP.replace("EPOCHS", str(epochs)))
    (folder / "c.py").write_text(CATALOGUE)
    return folder
