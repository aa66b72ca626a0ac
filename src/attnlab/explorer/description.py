"""What the engine in JavaScript must know of a model beside its weights (``js/engine/types.js``)."""

from dataclasses import dataclass
from typing import Any

from attnlab.explorer.tasks import output_labels
from attnlab.images import Scale, has_images
from attnlab.runs import RunFolder
from attnlab.specs import Columns, ModelSpec, Tokens, TokensModel, to_json

ONE_BY_ONE = Columns()


@dataclass(frozen=True)
class EngineDescription:
    """A model by its spec and what was made to measure for its task.

    ``image`` is channels, height and width of an image, or of each of its cells; ``scaling`` what is
    subtracted from pixels of 0 to 1, and what they are divided by.
    """

    model: ModelSpec
    vocabulary: int
    tokens: Tokens | None = None
    image: tuple[int, int, int] | None = None
    scaling: Scale | None = None
    start: int | None = None
    end: int | None = None
    target_length: int = 1
    choices: int = 0
    """Logits that can be said, the first of them; 0: all."""
    columns: Columns = ONE_BY_ONE
    temperature: float = 1.0
    """What logits are divided by before probabilities are made of them."""

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = to_json(self)
        return found


def describe_engine(run: RunFolder) -> EngineDescription:
    """The description of a run's model."""
    spec = run.spec()
    task, tokens = spec.task, spec.task.tokens
    if tokens is None and isinstance(spec.model, TokensModel):
        tokens = Tokens.shared(task.vocabulary)
    return EngineDescription(
        model=spec.model,
        vocabulary=task.vocabulary,
        tokens=tokens,
        columns=task.coupling,
        image=task.cell_shape,
        scaling=task.scale if has_images(task) else None,
        start=task.start,
        end=task.end,
        target_length=task.target_length,
        choices=len(output_labels(task, task.vocabulary)),
        temperature=run.temperature,
    )
