"""Analyses that the page starts: ablate, explain and heads, on one input or on examples of a split."""

from attnlab.errors import InputError
from attnlab.explorer.answering import Answerer
from attnlab.explorer.scene import Job, JobResult
from attnlab.progress import Progress


def work(answerer: Answerer, job: Job, name: str, progress: Progress) -> JobResult:
    """Do ``job``."""
    raise InputError(f"{job.analysis} is not there yet")
