"""What whoever runs a graph without attnlab has to know, asked of the task.

A graph takes numbers and gives numbers. What they stand for is JSON: in the notes of the ONNX file and in a
file of its own beside it, so that a few lines of onnxruntime are enough to use a model
(docs/howto/export.md).
"""

from dataclasses import dataclass

import torch

from attnlab.analysis.image_classifier import image_classifier
from attnlab.export.trial import Trial
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.specs import Task, spec_hash


@dataclass(frozen=True)
class Scaling:
    """Inputs are (pixels of 0 to 1 less ``mean``) / ``deviation``."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Worked:
    """One example: as a person writes it, its tokens, what the model says, and what that means."""

    text: str
    input: list[int]
    output: list[int]
    answer: str


@dataclass(frozen=True, kw_only=True)
class Instructions(Result):
    """How to use a graph.

    ``input_symbols`` are what tokens of the input stand for, None where inputs are images, to which
    ``scaling`` belongs; ``output_symbols`` what logits are of, ``places`` what each token of an answer is
    called. ``padding`` fills up shorter inputs. ``start``, ``end`` and ``steps`` are of greedy decoding:
    the token before an answer, the one behind it, and how many tokens are said. Probabilities are
    softmax(logits / ``temperature``).
    """

    run: str
    spec: str
    task: Task
    about: str
    decoding: str
    input_symbols: list[str] | None
    output_symbols: list[str]
    places: list[str]
    padding: int | None
    start: int | None
    end: int | None
    steps: int
    temperature: float
    scaling: Scaling | None
    example: Worked | None


CLASS = "the answer is the one of output_symbols that has the highest logit"
GREEDY = (
    "begin with target = [[start]]; steps times, append to target the number of the highest logit at its "
    "last place; the numbers behind start are the answer, read by output_symbols"
)


def make_instructions(run: RunFolder, trial: Trial) -> Instructions:
    """How to use the graph of ``run``."""
    spec = run.spec()
    task, classes = spec.task, spec.task.start is None
    scaling = Scaling(*image_classifier(run).members[0].scale) if task.images else None
    return Instructions(
        run=run.name,
        spec=spec_hash(spec),
        task=task,
        about=f"{trial.names[0]}: {_about(task, scaling)}",
        decoding=CLASS if classes else f"{GREEDY}{'' if task.end is None else ' up to end'}",
        input_symbols=_input_symbols(task),
        output_symbols=task.labels() if classes else task.symbols(torch.arange(task.vocabulary)),
        places=task.places(),
        padding=task.padding,
        start=task.start,
        end=None if classes else task.end,
        steps=trial.steps,
        temperature=run.temperature,
        scaling=scaling,
        example=None if task.images else _worked(task, trial, run.spec().seed),
    )


def _about(task: Task, scaling: Scaling | None) -> str:
    """What the numbers of inputs and logits stand for."""
    read = task.input_words()
    if scaling is not None:
        read = f"({read}, less {scaling.mean}) / {scaling.deviation}"
    if task.start is None:
        *names, last = task.labels()
        return f"{read}; logits: of {', '.join(names)} and {last}"
    target = f"target: the start token {task.start} and the answer's tokens so far"
    return f"{read}; {target}; logits: of every next token"


def _input_symbols(task: Task) -> list[str] | None:
    """A sign for each token of an input; none for the one that a model puts in front by itself."""
    if task.images:
        return None
    count = task.vocabulary if task.tokens is None else task.tokens.count
    front = None if task.tokens is None or task.start is not None else task.tokens.front
    return ["" if token == front else task.symbols(torch.tensor([token]))[0] for token in range(count)]


@torch.inference_mode()
def _worked(task: Task, trial: Trial, seed: int) -> Worked:
    """The first validation example, and what the model says of it."""
    example = task.splits(seed).valid[slice(0, 1)]
    source = example.inputs[0]
    if task.start is None:
        said = trial.model(source).argmax(dim=-1)
        answer = task.answer(said[0])
    else:
        (said,) = trial.model.answer(source, start=task.start, length=trial.steps)
        answer = task.answer(said)
    return Worked(task.show(example).name, source[0].tolist(), said.tolist(), answer)
