"""Specs in Python: a task's preset with some of its keys set; and what is checked before a training."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.errors import SpecError, brief
from attnlab.images import has_images
from attnlab.presets import preset as find_preset
from attnlab.registry import register, task_names
from attnlab.specs import Spec, Task, require, whole_key, with_settings
from attnlab.training.trackers import Tracker, load_tracker

Start = str | Path | Task | type[Task] | Spec


def spec(task: Start, *, preset: str = "default", **settings: Any) -> Spec:
    """What a run is made from: the preset of a task, with keys set.

    ``task`` is the name of a task, a file that defines one, a class or an instance of it, or a spec to
    start from. A key is named by its last word (``heads``, ``lr``, ``digits``), or in full with two
    underscores for the dot (``model__heads``) where several end alike. A choice between variants is a
    word: ``positions="rotary:base=500"``.

    >>> spec("addition", digits=2, heads=1, lr=0.003).model.heads
    1
    """
    base = _base(task, preset)
    keys = {whole_key(base, name.replace("__", ".")): value for name, value in settings.items()}
    return with_settings(base, keys) if keys else base


def _base(task: Start, preset: str) -> Spec:
    if isinstance(task, Spec):
        if preset != "default":
            raise SpecError(
                f"preset is {brief(preset)}, but the given spec has all keys already; leave it out"
            )
        return task
    if isinstance(task, str | Path):
        return find_preset(str(task), preset)
    kind = task if isinstance(task, type) else type(task)
    if kind.kind not in task_names():
        register(kind)
    found = find_preset(kind.kind, preset)
    return found if isinstance(task, type) else replace(found, task=task)


def check_options(task: Task, *, checkpoint: float, track: Sequence[Tracker], show: int) -> None:
    """Refuse what cannot be done before there is a run folder."""
    require(checkpoint >= 0, "checkpoint", checkpoint, "at least 0")
    for name in track:
        load_tracker(name)
    require(show >= 0, "show", show, "at least 0")
    if show and not has_images(task):
        raise SpecError(
            f"show is {show}, which needs a task with images; the task {brief(task.kind)} has none"
        )
