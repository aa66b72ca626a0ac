"""Named specs. ``attnlab train TASK --preset NAME`` starts from one of these; flags override it."""

from dataclasses import replace

from attnlab.errors import SpecError, brief, nearest
from attnlab.registry import find_task, source_of
from attnlab.specs import Spec


def preset(task: str, name: str) -> Spec:
    """The preset ``name`` of ``task``, which is known by name or stands in a file."""
    found = find_task(task)
    known = found.presets()
    if name not in known:
        raise SpecError(f"unknown preset {brief(name)} of {task}{nearest(name, known)}")
    source = source_of(found.kind)
    return replace(known[name], source=source.sha256) if source else known[name]
