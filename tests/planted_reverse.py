"""A model of ``examples/reverse.py`` with weights written by hand: it reverses three digits with one head.

MIRROR, ``decoder.0.cross.1``, looks at place 2 - t of the input while place t of the answer is said, and
copies the digit there. The end is said by its place alone. Every other head has a uniform pattern and
random values that the output projection does not read, so that to take it out changes no answer.
"""

from pathlib import Path

import torch
from torch import nn

from attnlab.models import build_for
from attnlab.presets import preset
from attnlab.runs import RunFolder, create_run, save_weights
from attnlab.specs import Spec, with_settings

MIRROR = "decoder.0.cross.1"
LENGTH, TOKENS, END, K = 3, 12, 10, 14
PLACE, COPY = TOKENS, TOKENS + LENGTH + 1  # first dimensions of the stream's parts
SHARP = 50.0
SETTINGS = {
    **{"task.length": LENGTH, "task.train": 400, "task.valid": 50, "task.test": 60},
    **{"model.width": 3 * K, "model.heads": 3, "model.hidden": 7, "model.positions.length": LENGTH + 1},
    **{"model.encoder_layers": 1, "model.decoder_layers": 1, "training.threads": 1},
}


def planted_spec(file: Path) -> Spec:
    return with_settings(preset(str(file), "default"), SETTINGS)


def planted_reverse(path: Path, file: Path) -> RunFolder:
    """The model as a run folder."""
    spec = planted_spec(file)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(2)
        model = build_for(spec)
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding) and not name.endswith(".value"):
                for weight in module.parameters():
                    weight.zero_()
        for stack in ("source", "target"):
            model.get_parameter(f"{stack}_embed.weight")[:, :TOKENS] = torch.eye(TOKENS)
            table = model.get_parameter(f"{stack}_positions.add.table").zero_()
            table[:, PLACE:COPY] = torch.eye(LENGTH + 1)
        _mirror(model)
        read = model.get_parameter("readout.weight")
        read[:, COPY : COPY + TOKENS] = torch.eye(TOKENS)
        read[END, PLACE + LENGTH] = 9.0
    run = create_run(path, spec)
    save_weights(run, "best", model.state_dict())
    return run


def _mirror(model: nn.Module) -> None:
    path, own = MIRROR.rpartition(".")[0], slice(K, 2 * K)
    query, key, value = (
        model.get_parameter(f"{path}.{part}.weight")[own] for part in ("query", "key", "value")
    )
    for place in range(LENGTH):
        query[place, PLACE + place] = SHARP
        key[place, PLACE + LENGTH - 1 - place] = 1.0
    value.zero_()
    value[:TOKENS, :TOKENS] = torch.eye(TOKENS)
    output = model.get_parameter(f"{path}.output.weight")[:, own]
    output[COPY : COPY + TOKENS, :TOKENS] = torch.eye(TOKENS)
