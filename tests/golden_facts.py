"""What is recorded besides commands: hashes of specs, and results of studies, written again."""

import hashlib
import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from attnlab.cli import main
from attnlab.specs import spec_hash
from attnlab.studies.outcome import read_results
from attnlab.studies.study import read_catalogue
from golden_compare import EXACT_ONLY
from specs import PRESETS

STUDIES = read_catalogue()
RESULTS = Path(__file__).parents[1] / "results"


def spec_hashes() -> dict[str, Any]:
    """Of every preset, and of every variant of every study with its first seed."""
    presets = {
        f"{task}/{name}": spec_hash(spec) for task, named in PRESETS.items() for name, spec in named.items()
    }
    studies = {
        name: {variant: spec_hash(study.spec(variant, study.first_seed)) for variant in study.variants}
        for name, study in STUDIES.items()
    }
    return {"presets": presets, "studies": studies}


def finished_studies() -> list[str]:
    """Studies whose results lie in ``results``."""
    return sorted(path.parent.name for path in RESULTS.glob("*/study.json") if path.parent.name in STUDIES)


def study_results(folder: Path, *, pictures: bool) -> dict[str, Any]:
    """SHA-256 of what ``study show`` prints and of the files of a result; no pool is needed."""
    return {name: _written_again(name, folder / name, pictures=pictures) for name in finished_studies()}


def _written_again(name: str, folder: Path, *, pictures: bool) -> dict[str, Any]:
    shown = {form: _shown(name, form, folder.parent) for form in ("json", "markdown")}
    if not pictures:
        return {"shown": shown}
    result = read_results(RESULTS / name)
    assert result is not None
    result.save(folder)
    files = {path.name: _sha256(path.read_bytes()) for path in sorted(folder.iterdir())}
    plain = {name: value for name, value in files.items() if not name.endswith(".svg")}
    drawn = {name: {EXACT_ONLY: value} for name, value in files.items() if name.endswith(".svg")}
    return {"shown": shown, "written": plain | drawn}


def _shown(name: str, form: str, home: Path) -> dict[str, Any]:
    out, error = io.StringIO(), io.StringIO()
    with chdir(home), redirect_stdout(out), redirect_stderr(error):
        code = main.run(["study", "show", name, "--out", str(RESULTS / name), f"--{form}"])
    return {"code": code, "sha256": _sha256(out.getvalue().encode()), "notes": error.getvalue()}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
