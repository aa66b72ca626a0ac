"""The command that checks gradients: it agrees, and it finds planted faults."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.analysis.gradients import check_gradients
from attnlab.explicit import Network
from attnlab.specs import PatchAttentionModel, SinusoidalStart
from commands import attnlab


def test_every_tensor_agrees_with_both_witnesses() -> None:
    found = check_gradients(PatchAttentionModel(width=16, positions=SinusoidalStart()), batch=3, entries=40)
    assert len(found.tensors) == 15
    assert found.passes
    assert all(row.moved == min(40, row.shape[0] * [*row.shape, 1][1]) for row in found.tensors)
    assert sum(row.kinks for row in found.tensors) < 20


@pytest.mark.parametrize("tensor", ["positions", "key_weight", "expand_bias"])
def test_a_wrong_gradient_is_found(tensor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Network.gradients

    def wrong(self: Network, *values: Any) -> Any:
        loss, right, found = true(self, *values)
        return loss, right, found._replace(**{tensor: getattr(found, tensor) * 1.001})

    monkeypatch.setattr(Network, "gradients", wrong)
    checked = check_gradients(PatchAttentionModel(positions=SinusoidalStart()), batch=2, entries=10)
    assert not checked.passes
    assert sum(row.autograd > 1e-4 for row in checked.tensors) == 1
    assert sum(row.central > 1e-4 for row in checked.tensors) == 1


def test_the_command(tmp_path: Path) -> None:
    done = attnlab("gradcheck", "--batch", "2", "--entries", "5", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["passes"]
    assert {row["tensor"] for row in found["tensors"]} >= {"embed.positions", "encoder.0.self.key.weight"}
    table = attnlab("gradcheck", "--batch", "2", "--entries", "5", cwd=tmp_path)
    assert "encoder.0.feed.down.bias" in table.stdout
    refused = attnlab("gradcheck", "--batch", "0", cwd=tmp_path, code=2)
    assert "batch is 0, but it must be at least 1" in refused.stderr
    refused = attnlab("gradcheck", "--patch", "5", cwd=tmp_path, code=2)
    assert "model.patch is 5" in refused.stderr
