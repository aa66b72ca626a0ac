"""What torch answers to examples, and how far the model in a page may be from it."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.predict import answer_all, fed_inputs
from attnlab.analysis.subjects import batches
from attnlab.errors import LabError
from attnlab.explorer.answering import ended
from attnlab.explorer.javascript import JavaScript
from attnlab.explorer.scene import Asked, ExampleInput
from attnlab.explorer.stored import store
from attnlab.explorer.tasks import Inputs
from attnlab.explorer.weights import BITS, rounded
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.sets import Examples

TOLERANCE = 1e-3
"""How far a logit in a page may be from torch's."""
ROUNDING = TOLERANCE / 2
"""What the rounding of weights may take of that; the rest is left to the order of sums."""
CHECKED = 1000
"""Examples that are answered by both."""
PART = 20
"""Examples that are sent to V8 at once."""


@dataclass(frozen=True)
class Reference:
    """What ``model`` says to the first examples of a split, and its logits while it is fed that.

    Shorter answers are filled up; ``lengths`` are their own, and only logits within them are compared.
    """

    inputs: Inputs
    split: Asked
    examples: Examples
    said: Int[Tensor, "N T"]
    logits: Float[Tensor, "N T V"]

    def __len__(self) -> int:
        return len(self.said)

    @cached_property
    def lengths(self) -> Int[Tensor, "N"]:
        """Tokens of each answer."""
        return ended(self.said, self.inputs.task.end)

    def judge(self, found: Sequence[Mapping[str, Any]], start: int = 0) -> tuple[int, float]:
        """Answers of a page, from that to the example at ``start`` on: how many are others than torch's,
        and how far logits are away where they are not, at most.
        """
        wrong, away = 0, 0.0
        for row, each in enumerate(found, start=start):
            length = int(self.lengths[row])
            if each["said"] != self.said[row, :length].tolist():
                wrong += 1
                continue
            logits = torch.tensor(each["logits"]).view(length, -1)
            wanted = self.logits[row, :length, : logits.shape[1]]  # the first are those that can be said
            away = max(away, float((logits - wanted).abs().max()))
        return wrong, away


def refer(inputs: Inputs, count: int = CHECKED, *, progress: Progress = silent) -> Reference:
    """Answers to test examples, or to validation examples where these are more."""
    sizes: dict[Asked, int] = {split: len(inputs.split(split)) for split in ("test", "valid")}
    split = max(sizes, key=lambda each: min(sizes[each], count))
    examples = inputs.split(split)[slice(0, count)]
    said = answer_all(inputs.task, inputs.model, examples, progress=progress)
    return Reference(inputs, split, examples, said, _logits(inputs, inputs.model, examples, said))


def fewest_bits(reference: Reference) -> int:
    """The fewest bits a weight with which torch says the same, with logits no farther than ``ROUNDING``."""
    inputs, tried = reference.inputs, copy.deepcopy(reference.inputs.model)
    weights = inputs.model.state_dict()
    away = 0.0
    for bits in BITS:
        tried.load_state_dict({**weights, **rounded(floats(weights), bits)})
        logits = _logits(inputs, tried, reference.examples, reference.said)
        apart = (logits - reference.logits).abs().amax(dim=-1)
        away = float(apart[torch.arange(apart.shape[1]) < reference.lengths[:, None]].max())
        same = bool((logits.argmax(dim=-1) == reference.logits.argmax(dim=-1)).all())
        if away <= ROUNDING and same:
            return bits
    raise LabError(
        f"with weights of {BITS[-1]} bits, the most that a page carries, logits are up to {away:.2g} from "
        f"those of the model; {ROUNDING:g} is allowed"
    )


def floats(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that a page needs."""
    return {name: tensor for name, tensor in weights.items() if tensor.is_floating_point()}


@torch.inference_mode()
def _logits(inputs: Inputs, model: Model, examples: Examples, said: Tensor) -> Float[Tensor, "N T V"]:
    found, done = [], 0
    for part in batches(examples, model):
        words = said[done : done + len(part)].to(part.targets.device)
        done += len(part)
        logits = model(*fed_inputs(inputs.task, part, words)).cpu()
        found.append(logits.reshape(len(part), -1, logits.shape[-1]))
    return torch.cat(found)


def compare(
    reference: Reference, script: str, data: dict[str, Any], *, progress: Progress = silent
) -> float:
    """How far the logits of a page's own script are from torch's, at most. Refuse what is too far, and
    answers that differ.
    """
    page = JavaScript(script)
    form = data["subject"]["task"]["image"]
    shape = [form["channels"], form["height"], form["width"]] if form else []
    page.call("(data) => { globalThis.opened = attnlab.unpacked(data, reader); return null; }", data)
    wrong, away = 0, 0.0
    for start in range(0, len(reference), PART):
        rows = slice(start, min(start + PART, len(reference)))
        indices = list(range(rows.start, rows.stop))
        given = [reference.inputs.read(ExampleInput(reference.split, index)) for index in indices]
        stored = store(given, indices, len(reference)).to_json()
        found = page.call("(stored, shape) => attnlab.answered(opened, stored, shape)", stored, shape)
        others, apart = reference.judge(found, rows.start)
        wrong, away = wrong + others, max(away, apart)
        progress(rows.stop, len(reference))
    if wrong or not away <= TOLERANCE:
        raise LabError(
            f"of {len(reference):,} {reference.split} examples the model in the page answers {wrong:,} "
            f"otherwise than torch, and its logits are up to {away:.2g} away, where {TOLERANCE:g} is "
            "allowed; nothing was written"
        )
    return away
