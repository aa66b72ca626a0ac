"""What the page must know of a subject before it asks anything."""

import inspect

from attnlab.analysis.explain.asking import require_sight
from attnlab.errors import LabError
from attnlab.explorer.answering import Answerer
from attnlab.explorer.scene import (
    FeedForm,
    LayerForm,
    ModelForm,
    PatchForm,
    SiteForm,
    SnapshotForm,
    StreamForm,
    TaskForm,
)
from attnlab.explorer.strata import Strata
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.results import Table
from attnlab.runs import RunFolder, snapshot_steps
from attnlab.specs import Task
from attnlab.tables.card import run_card

SUGGESTED, LOOKED = 3, 32
"""Examples that are suggested where the task has nothing to say, of those that are looked at."""


def run_facts(run: RunFolder) -> list[tuple[str, str]]:
    """The run's card."""
    tables = [part for part in run_card(run) if isinstance(part, Table)]
    return [(label, value) for table in tables for label, value in table.rows]


def model_facts(model: Model) -> list[tuple[str, str]]:
    """What is known of a model without a run."""
    return [("model", model.called), ("parameters", f"{count_parameters(model):,}")]


def task_title(task: Task) -> str:
    """The first sentence that the task says of itself."""
    return (inspect.getdoc(type(task)) or task.kind).partition("\n")[0].rstrip(".")


def count_parameters(model: Model) -> int:
    return sum(each.numel() for each in model.parameters())


def model_form(answerer: Answerer) -> ModelForm:
    """The parts of a model that can be seen and changed."""
    model, parts, probe = answerer.model, answerer.parts, answerer.probe
    sites = [
        SiteForm(
            site.path,
            site.stack,
            site.layer,
            site.kind,
            site.heads,
            site.queries,
            "places" if answerer.joined(site) else site.keys,
        )
        for site in parts.sites.values()
    ]
    return ModelForm(
        kind=model.called,
        parameters=count_parameters(model),
        sites=sites,
        layers=[LayerForm(path, inside) for path, inside in parts.layers.items()],
        feeds=[FeedForm(path, probe.hidden[path]) for path in parts.feeds],
        streams=[
            StreamForm(path, f"after layer {number}")
            for number, path in enumerate(model.early_streams(), start=1)
        ],
        patches=_patches(answerer),
    )


def task_form(strata: Strata, labels: list[str]) -> TaskForm:
    """What the page must know to ask for inputs and to show answers, whose logits are ``labels``."""
    inputs, task, suggestions = strata.inputs, strata.inputs.task, _suggestions(strata)
    return TaskForm(
        kind=task.kind,
        noun=task.noun,
        input=inputs.kind,
        placeholder=suggestions[0] if suggestions else "",
        suggestions=suggestions,
        image=inputs.image_form(),
        labels=labels,
        places=task.places(),
        answer="class" if task.start is None and task.target_length == 1 else "sequence",
        note=task.note(),
        splits={"valid": strata.counted("valid"), "test": strata.counted("test")},
        tour=list(task.tour()),
    )


def _suggestions(strata: Strata) -> list[str]:
    """What the task suggests, or first examples that can be read: one of each answer, then others."""
    if strata.inputs.kind != "text":
        return []
    count = min(LOOKED, len(strata.inputs.split("valid")))
    items = [strata.item("valid", number) for number in range(count)]
    readable = [each for each in items if strata.inputs.readable(each.name)]
    first = {each.truth: each for each in reversed(readable)}
    ordered = sorted(readable, key=lambda each: first[each.truth] is not each)
    return strata.inputs.task.suggestions() or [each.name for each in ordered[:SUGGESTED]]


def _patches(answerer: Answerer) -> PatchForm | None:
    image, probe = answerer.inputs.image_form(), answerer.probe
    if image is None or not probe.tokens:
        return None
    rows, columns = patch_grid((image.height, image.width), probe.tokens)
    return PatchForm(rows, columns, probe.front)


def snapshot_forms(run: RunFolder) -> list[SnapshotForm]:
    """The snapshots that a run has."""
    steps = snapshot_steps(run)
    epochs = {line.step: line for line in run.metrics().epochs} if steps else {}
    return [
        SnapshotForm(step, float(epochs[step].epoch), epochs[step].valid_exact_match)
        if step in epochs
        else SnapshotForm(step, None, None)
        for step in steps
    ]


def explainable(model: Model) -> bool:
    """Whether answers can be attributed to parts of an input."""
    try:
        require_sight(model)
    except LabError:
        return False
    return True
