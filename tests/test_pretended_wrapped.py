"""Models of others on a device that is not the CPU. How they compute there is their affair: only what mixes
devices is an error.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.devices import device_of, place
from attnlab.front.any_model import AnyModel
from attnlab.sets import Examples
from foreign_models import PlainStack, bert, timm_vit
from pretend import PRETENDED, pretending
from results_alike import alike

CHANCE = torch.Generator().manual_seed(5)
TOKENS = torch.randint(11, (12, 7), generator=CHANCE)
IMAGES = 5 * torch.randn(12, 3, 16, 16, generator=CHANCE)
LABELS = torch.arange(12) % 7


class Classified(nn.Module):
    """Classes of what torch's encoder makes of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.readout = nn.Embedding(11, 35), nn.Linear(35, 7)
        self.encoder = nn.TransformerEncoderLayer(35, 5, dim_feedforward=17, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.encoder(self.embed(tokens)).mean(dim=1))


MODULES: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "torch": (Classified, TOKENS),
    "timm": (lambda: timm_vit(depth=1), IMAGES),
    "bert": (lambda: bert(1), TOKENS),
    "by hand": (lambda: PlainStack(1), TOKENS),
}


def pruned(model: AnyModel, data: Examples) -> Any:
    found = model.prune(data, keep=4)
    assert device_of(found.model) == device_of(model)
    return [found.kept, found.valid_curve, found.test]


ASKED: dict[str, Callable[[AnyModel, Examples], Any]] = {
    "heads": lambda model, data: model.heads(data),
    "ablate": lambda model, data: model.ablate(data, baselines=("mean", "zero", "resample")),
    "explain": lambda model, data: model.explain(data.inputs[0][:1], data=data),
    "patch": lambda model, data: model.patch(data.inputs[0][:6], data.inputs[0][6:]),
    "prune": pruned,
}


LEFT_OUT = (("by hand", "patch"), ("by hand", "prune"))  # it says one class only; its weights are not known


@pytest.mark.filterwarnings("ignore::attnlab.analysis.patch.runs.SmallDifferenceWarning")
@pytest.mark.parametrize(
    ("name", "what"),
    [(name, what) for name in MODULES for what in ASKED if (name, what) not in LEFT_OUT],
)
def test_the_same_is_found(name: str, what: str) -> None:
    make, inputs = MODULES[name]
    torch.manual_seed(3)
    module = make().eval()
    expected = ASKED[what](attnlab.wrap(module, inputs=(inputs[:2],)), attnlab.examples(inputs, LABELS))
    with pretending(strict=False):
        there = place(deepcopy(module), PRETENDED)
        model = attnlab.wrap(there, inputs=(inputs[:2],))
        assert device_of(model) == PRETENDED
        data = attnlab.examples(inputs.to(PRETENDED), LABELS.to(PRETENDED))
        alike(expected, ASKED[what](model, data))
