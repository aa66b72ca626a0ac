"""A study's result as a folder that is small enough to commit: numbers, table and picture.

study.json    every seed's value, means, intervals, differences, and what it was made with
study.md      the same as tables
study.svg     a dot for each seed
heads.svg     heads matched across seeds, where a study matches heads
curves.svg    values over lengths, say, where a study has curves
factors.svg   the mean of each cell and the parts of the variance, where a study crosses two factors
"""

import json
from pathlib import Path

from attnlab.errors import RunError, SpecError
from attnlab.spec import from_json
from attnlab.storage import refusing, write_json, write_text
from attnlab.studies.outcome import FORMAT, StudyResult
from attnlab.studies.tables import markdown

FILE = "study.json"


def write_results(result: StudyResult, folder: Path) -> None:
    """Write the files."""
    from attnlab.figures.patching import draw_grids
    from attnlab.figures.seeds import draw_seeds, seeds_data  # here: who only reads needs no pictures
    from attnlab.figures.style import to_svg  # here: who only reads needs no pictures
    from attnlab.figures.variants import (
        draw_factors,
        draw_variants,
        factors_data,
        matched_data,
        variants_data,
    )

    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, result.to_json())
    write_text(folder / "study.md", f"# {result.study}\n\n{result.question}\n\n{markdown(result)}")
    write_text(folder / "study.svg", to_svg(draw_seeds(seeds_data(result))))
    if result.heads:
        write_text(folder / "heads.svg", to_svg(draw_grids(matched_data(result.heads[0]))))
    if result.curves:
        write_text(folder / "curves.svg", to_svg(draw_variants(variants_data(result))))
    if result.factors:
        write_text(folder / "factors.svg", to_svg(draw_factors(factors_data(result))))


def read_results(folder: Path) -> StudyResult | None:
    """The result that lies in ``folder``, or None if there is none."""
    path = folder / FILE
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        version = result["format"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is no study's result ({type(error).__name__}: {error})") from error
    if version != FORMAT:
        raise RunError(
            f"{path} has format {version!r}, but this version of attnlab reads format {FORMAT}; "
            "write it anew with: attnlab study run"
        )
    try:
        return from_json(StudyResult, result, "it", extra=True)
    except SpecError as error:
        raise RunError(f"{path} is damaged: {error}") from error
