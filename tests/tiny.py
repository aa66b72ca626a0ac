"""A training that takes fifteen steps and hardly any time."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from attnlab.problems.addition import Addition
from attnlab.specs import Constant, Seq2SeqModel, Spec, Training
from attnlab.training.measuring import Measured

TINY = Spec(
    task=Addition(digits=1, train=23, valid=7, test=5),
    model=Seq2SeqModel(width=6, heads=3, encoder_layers=1, decoder_layers=1, hidden=5, dropout=0.1),
    training=Training(epochs=3, batch=5, lr=0.01, schedule=Constant()),
    seed=3,
)


def tiny(**training: Any) -> Spec:
    return replace(TINY, training=replace(TINY.training, **training))


def same(a: nn.Module, b: nn.Module) -> bool:
    mine, yours = a.state_dict(), b.state_dict()
    return mine.keys() == yours.keys() and all(torch.equal(mine[name], yours[name]) for name in mine)


def fake_losses(monkeypatch: pytest.MonkeyPatch, *losses: float) -> None:
    left = iter(losses)
    monkeypatch.setattr("attnlab.training.engines.measure", lambda *_, **__: Measured(next(left), 0.0, 0.0))
