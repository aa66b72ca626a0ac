"""Two questions asked of a classifier with attention before training and after each epoch.

**How uniform is its attention?** The mean entropy of a row of the pattern over the largest there can be:

    entropy = mean of -sum_s p_s log p_s / log S        1: every key gets the same weight, 0: one gets all

with S the keys that the row's query sees.

**Does it know where a patch stands?** Of images only: the patches of each are shuffled, all alike, and
the answers compared by their total variation:

    moved = mean of 1/2 sum_c |p(c | image) - p(c | shuffled image)|     0: a bag of patches is all it sees
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.devices import device_of
from attnlab.model import Model, attentions
from attnlab.models import seen_keys
from attnlab.models.images import cut_patches, shuffle_patches
from attnlab.runs import ProbeRecord, RunFolder, as_line
from attnlab.runs.files import METRICS
from attnlab.taps import record
from attnlab.training.events import EpochRecord, Listener
from attnlab.training.trainer import Trainer

IMAGES = 500
_SHUFFLE = 49


@torch.inference_mode()
def probe(model: Model, given: Tensor) -> dict[str, float]:
    """Both answers for images; a model without patches is not asked the second."""
    given = given.to(device_of(model))
    with record(model, "*.pattern", "*.scores") as seen:
        before = model(given).softmax(dim=1)
    own = model.input_mask(given)
    entropies = [
        relative_entropy(seen[f"{path}.pattern"], seen_keys(seen[f"{path}.scores"], own))
        for path in attentions(model)
    ]
    found = {"entropy": sum(entropies) / max(1, len(entropies))}
    if model.patch_size is not None:
        patches = cut_patches(given[:1], model.patch_size).shape[1]
        order = torch.randperm(patches, generator=torch.Generator().manual_seed(_SHUFFLE))
        after = model(shuffle_patches(given, model.patch_size, order.to(given.device))).softmax(dim=1)
        found["moved"] = (before - after).abs().sum(dim=1).mean().item() / 2
    return found


def relative_entropy(pattern: Float[Tensor, "B H T S"], visible: Bool[Tensor, "B H T S"]) -> float:
    """Mean entropy of a row, from 0 (one key) to 1 (all alike); rows that see one key do not count."""
    seen = visible.sum(dim=-1)
    rows = seen > 1
    each = torch.special.entr(pattern).sum(dim=-1)[rows] / seen[rows].log()
    return each.mean().item() if len(each) else 0.0


@final
class Probes(Listener):
    """Writes a line of metrics where training begins, unless it goes on, and after each epoch."""

    def __init__(self, run: RunFolder, *, goes_on: bool) -> None:
        self._run = run
        self._goes_on = goes_on

    def started(self, trainer: Trainer) -> None:
        if not self._goes_on:
            self._write(trainer)

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        model = trainer.kept
        if model.input_path is not None and not model.decodes:
            found = probe(model, trainer.data.valid.inputs[0][:IMAGES])
            self._run.append(METRICS, as_line(ProbeRecord(trainer.step, **found)))
