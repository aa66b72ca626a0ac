"""Results of studies that nobody ran, with only what a test is about."""

from typing import Any

from attnlab.specs import to_json
from attnlab.studies.outcome import StudyResult

BLANK: dict[str, Any] = {
    **{"format": 1, "study": "colours", "question": "Which is best?", "command": "none"},
    **{"environment": {}, "commits": [], "seeds": [0], "baseline": None, "complete": True},
    **{"runs": {"finished": 0, "wanted": 0}, "measures": [], "variants": [], "differences": []},
    "timings": {},
}
VARIANT: dict[str, Any] = {"spec": {}, "runs": [], "measures": {}, "failed": []}


def study_result(known: dict[str, Any]) -> StudyResult:
    """A result of which ``known`` is given, by the keys of its JSON."""
    data = to_json({**BLANK, **known})
    return StudyResult.from_json({**data, "variants": [{**VARIANT, **each} for each in data["variants"]]})
