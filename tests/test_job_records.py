"""What travels or stays of a job: its JSON, the name of its run, the failure that a run keeps."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import SpecError
from attnlab.runs import create_run
from attnlab.specs import Spec, spec_hash
from attnlab.studies.jobs import Failure, Job, failure, keep_failure, run_name
from specs import specs
from tiny import tiny
from tiny_jobs import (
    SPEC,
)


@given(
    spec=specs,
    analyses=st.lists(st.sampled_from(["evaluate-valid", "evaluate-test", "verify"]), unique=True),
    asks=st.booleans(),
    tracks=st.lists(st.sampled_from(["tensorboard", "wandb"]), unique=True),
)
def test_a_job_survives_its_journey(spec: Spec, analyses: Any, asks: bool, tracks: Any) -> None:
    job = Job(spec=spec, analyses=tuple(analyses), asks=asks, tracks=tuple(tracks))
    arrived = Job.from_json(json.loads(json.dumps(job.to_json())))
    assert arrived == job
    assert arrived.name == job.name == f"{spec.task.kind}-{spec_hash(spec)}"


def test_a_setting_that_is_not_known_here_is_refused() -> None:
    """A worker of another version would train something else under the same name."""
    data = Job(spec=SPEC).to_json()
    data["spec"]["training"]["newer"] = 1
    with pytest.raises(SpecError, match=r"unknown key job\.spec\.training\.newer"):
        Job.from_json(data)


def test_a_run_goes_by_what_decides_its_outcome() -> None:
    assert run_name(SPEC) == run_name(replace(SPEC))
    changed = [replace(SPEC, seed=4), tiny(threads=2), tiny(threads=1, lr=0.011)]
    assert len({run_name(spec) for spec in (SPEC, *changed)}) == 4


def test_a_failure_is_read_as_it_was_kept(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    assert failure(run) is None
    keep_failure(run, "too big", final=False, trace="first\nlast")
    assert failure(run) == Failure(error="too big", traceback=["first", "last"])


DAMAGES = (b"", b'{"error": "to', b"[]", b"null", b"{}", b'{"final": true}', b"\xff")


@pytest.mark.parametrize("content", DAMAGES)
def test_a_damaged_failure_is_one_that_may_be_tried_again(content: bytes, tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    run.write({"error.json": content})
    assert failure(run) == Failure(error="error.json cannot be read")
