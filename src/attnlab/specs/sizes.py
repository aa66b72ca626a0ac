"""How much memory an experiment needs at least, told by its spec before anything is built.

A block of width D with hidden width F has 4 D^2 weights in each attention and 2 D F in its feed-forward
layer; embeddings, norms and readouts are small compared with them and not counted, so what fits is
not refused. Training holds the weights, their gradient, two moments of the optimiser and the best weights
so far.
"""

from attnlab.cores import memory
from attnlab.errors import SpecError
from attnlab.specs.experiment import Spec
from attnlab.specs.models import (
    CNNModel,
    MLPModel,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Seq2SeqModel,
    StackSpec,
    TokensModel,
    VitModel,
)
from attnlab.specs.positions import Coupled, Learned, Randomised

TRAINED = 5
"""Numbers that training holds for each parameter."""
_FLOAT, _WHOLE = 4, 8
"""Bytes of a parameter, and of a number of an example."""


def parameters(model: ModelSpec) -> int:
    """How many parameters a model has at least."""
    match model:
        case MLPModel():
            return model.hidden
        case CNNModel():
            return model.filters * model.kernel**2
        case PatchAttentionModel():
            return 3 * model.width**2 + 2 * model.width * model.hidden
        case Seq2SeqModel() | PatchSeq2SeqModel():
            feeds, whole = model.encoder_layers + model.decoder_layers, model.attentions
        case TokensModel() | VitModel():
            feeds = whole = model.layers
    kept = sum(model.head_counts) / model.heads if model.head_counts else whole
    return int(4 * model.width**2 * kept) + feeds * (2 * model.width + 1) * model.hidden + _table(model)


def _table(model: StackSpec) -> int:
    """Of a table of positions."""
    match model.positions:
        case (
            Learned(length=places)
            | Randomised(inner="learned", limit=places)
            | Coupled(inner="learned", limit=places)
        ):
            return places * model.width
    return 0


def check_model(model: ModelSpec, *, copies: int = 1) -> None:
    """Refuse a model of which so many ``copies`` do not fit into the machine's memory."""
    count = parameters(model)
    _check(f"a model of at least {count:,} parameters", copies * _FLOAT * count)


def check_sizes(spec: Spec) -> None:
    """Refuse an experiment whose training does not fit into the machine's memory."""
    check_model(spec.model, copies=TRAINED)
    task = spec.task
    count = task.train + task.valid + task.test
    _check(f"{count:,} examples of the task {task.kind}", _WHOLE * task.stored_numbers)


def _check(what: str, needed: int) -> None:
    there = memory()
    if needed > there:
        raise SpecError(
            f"{what} would take {_gigabytes(needed)} of memory, but this machine has {_gigabytes(there)}; "
            "make it smaller"
        )


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count < 2**70 else "more than 2^70 bytes"
