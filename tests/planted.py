"""Models with weights written by hand, in which it is known what every head does.

``planted()`` is an ordinary ``Seq2Seq`` of 2 + 2 layers with 3 heads each, built from its spec, for sums of
two numbers of two digits, the ones first. It can be saved as a run (``planted_run``). Its heads:

    COPY   encoder.0.self.1    looks at its own token (diagonal 1) and copies the token into dimensions
                               of its own; nothing else in the decoder's memory is read as a digit
    ALIGN  decoder.0.cross.2   at the place of column c = 0, 1: weight 1/2 on each of the two digits of
                               column c; at the last digit and at the end: weight 1 on the ``+``;
                               z times 2 is the sum u of the column (0 at the ``+``)

With ``carries=False`` these two are all: the digit said is min(u, 9). So a sum is wholly right exactly
when no column sends a carry (``task.carries(pairs)`` has no true), and wrong otherwise. Without COPY, or
without ALIGN, u is 0 everywhere and only 0+0 is right.

With ``carries=True`` the model adds every pair rightly, and two heads more have work:

    CARRY  decoder.1.cross.0   weight 1/2 on each digit of the column before, c - 1; at the first digit and
                               at the end: weight 1 on the ``+``; z times 2 is the sum p of that column
    OWN    decoder.0.self.1    looks at its own token, the digit s that was said last, and copies it

    p - s = 10 (carry sent by column c - 1) - (carry that column received),
    q = u + (p - s) / 10 + 1/20 = (u + carry) within 1/20, and the digit is q, less 10 from 9.5 on.

(This is done by the last feed-forward layer; the encoder's and the first decoder layer's are zero.)
Without CARRY and OWN both, q = u + 1/20, and a sum is right exactly when no column receives a carry that
is sent: when the longest carry chain is 0.

All other heads do nothing: their queries and keys are zero, so their pattern is uniform over what they may
see; their values are random numbers, so z is not zero; but the output projection does not read z. To take
them out changes no bit of the logits.

``planted_module()`` is the same idea on a module of a user's own: a reader of the first token.
"""

import math
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.attention import Attention
from attnlab.model import Model
from attnlab.models import Seq2Seq, build_model
from attnlab.problems.addition import Addition
from attnlab.problems.addition.task import END, PLUS, VOCABULARY
from attnlab.runs import RunFolder, create_run, save_weights
from attnlab.sets import Examples
from attnlab.specs import Learned, Seq2SeqModel, Spec

COPY, ALIGN, CARRY, OWN = "encoder.0.self.1", "decoder.0.cross.2", "decoder.1.cross.0", "decoder.0.self.1"
ACTIVE = {False: {COPY, ALIGN}, True: {COPY, ALIGN, CARRY, OWN}}
"""The heads that do something, by ``carries``."""

SPEC = Spec(
    task=Addition(digits=2, order="least", train=997, valid=499, test=499),
    model=Seq2SeqModel(
        width=42, heads=3, encoder_layers=2, decoder_layers=2, hidden=7, positions=Learned(length=5)
    ),
    seed=5,
)
WIDTH, K = 42, 14  # of the stream and of a head
SOURCE = 5  # a0 a1 + b0 b1
TOKEN, PLACE, FREE = 0, VOCABULARY, VOCABULARY + SOURCE  # first dimensions of the stream's parts
U, P, S, DIGIT, ONE, LAST = range(FREE, FREE + 12, 2)  # decoder only; x stands in one, -x in the next
PARTS = ("query", "key", "value")
SPARE = WIDTH - 1  # never written
UNIT = 0.1  # size of a digit's 1 in the decoder's stream
SHARP = 150.0  # differences of scores are at least so many times the inverse of the stream's deviation


def planted(*, carries: bool = False) -> tuple[Addition, Seq2Seq]:
    """The task and the model, ready to answer."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(2)
        assert isinstance(SPEC.model, Seq2SeqModel)
        assert isinstance(SPEC.task, Addition)
        model = build_model(SPEC.model, vocabulary=VOCABULARY)
        _clear(model)
        _embed(model)
        _copy(model, COPY, keep=torch.eye(VOCABULARY), into=range(FREE, FREE + VOCABULARY))
        _keep_one_hots(model.get_submodule("encoder.0.self_residual.norm"), ones=2)
        _keep_one_hots(model.encoder_norm, ones=3)
        _align(model, ALIGN, columns=(0, 1, None, None), into=U)
        if carries:
            _keep_one_hots(model.get_submodule("decoder.0.self_residual.norm"), ones=2)
            _copy(model, OWN, keep=UNIT * _digit_values()[None], into=(S, S + 1))
            _align(model, CARRY, columns=(None, 0, 1, None), into=P)
        _add_up(model, carries=carries)
        _read_out(model)
    assert isinstance(SPEC.task, Addition)
    return SPEC.task, model.eval()


def planted_run(path: Path, *, carries: bool = False) -> RunFolder:
    """The planted model as a run folder."""
    run = create_run(path, SPEC)
    save_weights(run, "best", planted(carries=carries)[1].state_dict())
    return run


def _clear(model: Seq2Seq) -> None:
    """All weights zero but values, which stay random; layer norms stay as they are."""
    for name, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.Embedding)) and not name.endswith(".value"):
            for weight in module.parameters():
                weight.zero_()


def _embed(model: Seq2Seq) -> None:
    """A one-hot for the token, another for the place."""
    for stack in ("source", "target"):
        model.get_parameter(f"{stack}_embed.weight")[:, TOKEN : TOKEN + VOCABULARY] = torch.eye(VOCABULARY)
        table = model.get_parameter(f"{stack}_positions.add.table").zero_()
        table[:, PLACE : PLACE + SOURCE] = torch.eye(SOURCE)


def _keep_one_hots(norm: nn.Module, *, ones: int) -> None:
    """Make a layer norm the identity for vectors of so many ones and else zeros."""
    assert isinstance(norm, nn.LayerNorm)
    mean = ones / WIDTH
    norm.weight.fill_(math.sqrt(mean - mean**2 + norm.eps))
    norm.bias.fill_(mean)


def _weights(model: Model, head: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Views of what one head has: query, key and value (K, D each), and output (D, K)."""
    path, _, index = head.rpartition(".")
    own = slice(int(index) * K, (int(index) + 1) * K)
    query, key, value = (model.get_parameter(f"{path}.{part}.weight")[own] for part in PARTS)
    return query, key, value, model.get_parameter(f"{path}.output.weight")[:, own]


def _copy(model: Seq2Seq, head: str, *, keep: Float[Tensor, "N V"], into: range | tuple[int, int]) -> None:
    """Look at the own place; write ``keep`` of its token into the stream (two dimensions: x and -x)."""
    query, key, value, output = _weights(model, head)
    query[:SOURCE, PLACE : PLACE + SOURCE] = SHARP * torch.eye(SOURCE)
    key[:SOURCE, PLACE : PLACE + SOURCE] = torch.eye(SOURCE)
    value.zero_()
    value[: len(keep), TOKEN : TOKEN + VOCABULARY] = keep
    if len(keep) == 1:
        output[into[0], 0], output[into[1], 0] = 1, -1
    else:
        output[into, range(len(keep))] = 1


def _align(model: Seq2Seq, head: str, *, columns: tuple[int | None, ...], into: int) -> None:
    """At place t look at both digits of ``columns[t]``, or at the + for none; write their sum."""
    query, key, value, output = _weights(model, head)
    for place, column in enumerate(columns):
        query[2 if column is None else column, PLACE + place] = SHARP
    for where, column in enumerate((0, 1, 2, 0, 1)):
        key[column, PLACE + where] = 1
    value.zero_()
    value[0, FREE : FREE + VOCABULARY] = 2 * UNIT * _digit_values()
    value[0, SPARE] = -value.sum()  # so that nothing copied is 0 whatever the layer norm adds to all
    output[into, 0], output[into + 1, 0] = 1, -1


def _digit_values() -> Float[Tensor, "V"]:
    values = torch.arange(float(VOCABULARY))
    values[PLUS:] = 0
    return values


def _add_up(model: Seq2Seq, *, carries: bool) -> None:
    """The last feed-forward layer: digit, a constant 1, and whether this is the end.

    The layer norm before it divides all by the stream's deviation, so everything here is linear or a
    ReLU without bias, and comes out divided by the same; only ratios are read in the end.
    """
    mean = 2 / WIDTH  # token and place; all else stands in pairs of opposite sign
    one = torch.zeros(WIDTH)
    one[PLACE : PLACE + SOURCE] = 1 / (1 - SOURCE * mean)
    last = mean * one
    last[PLACE + 3] += 1
    q = _feature(U)
    if carries:
        q = q + (_feature(P) - _feature(S)) / 10 + one / 20
    up, down = (model.get_parameter(f"decoder.1.feed.{part}.weight") for part in ("up", "down"))
    up[:5] = torch.stack((q, 2 * (q - 9.25 * one), 2 * (q - 9.75 * one), one, last))
    wrap = 10.0 if carries else 0.0
    for sign, offset in ((1.0, 0), (-1.0, 1)):
        down[DIGIT + offset, :3] = sign * UNIT * torch.tensor((1.0, -wrap, wrap))
        down[ONE + offset, 3] = sign
        down[LAST + offset, 4] = sign


def _feature(place: int) -> Float[Tensor, "D"]:
    """Reads what stands with both signs, in digits."""
    weights = torch.zeros(WIDTH)
    weights[place], weights[place + 1] = 0.5 / UNIT, -0.5 / UNIT
    return weights


def _read_out(model: Seq2Seq) -> None:
    """Logit of digit v: 2 v d - v^2, highest for the v nearest to d; of the end token: 10 [last] - 5."""
    digits = torch.arange(10.0)
    digit, one, last = _feature(DIGIT), UNIT * _feature(ONE), UNIT * _feature(LAST)
    weight = -20 * one.expand(VOCABULARY, WIDTH).clone()
    weight[:10] = 2 * digits[:, None] * digit - digits[:, None] ** 2 * one
    weight[END] = 10 * last - 5 * one
    model.readout.weight.copy_(40 * weight)


SYMBOLS = 7


@final
class Block(nn.Module):
    """What a user might have written."""

    def __init__(self) -> None:
        super().__init__()
        self.self = Attention(width=12, heads=2, head_width=7)

    def forward(self, x: Float[Tensor, "B T 12"]) -> Float[Tensor, "B T 12"]:
        return x + self.self(x, x)


@final
class Reader(Model):
    """Tokens and places as one-hots, one block, and a readout of the token that stands last."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([Block()])
        self.readout = nn.Linear(12, SYMBOLS, bias=False)

    def forward(self, tokens: Int[Tensor, "B 5"]) -> Float[Tensor, "B 7"]:
        symbols = nn.functional.one_hot(tokens, SYMBOLS).float()
        where = torch.eye(5).expand(len(tokens), 5, 5)
        x: Tensor = self.encoder[0](torch.cat((symbols, where), dim=2))
        return self.readout(x[:, -1])


READ = "encoder.0.self.1"
"""The one head of ``planted_module()`` that does something: it looks at the first of five tokens."""


def planted_module(count: int = 61) -> tuple[Model, Examples]:
    """A module of a user's own that tells the first of five tokens, and examples of it.

    READ puts weight 1 on the first token from everywhere and copies it; encoder.0.self.0 looks uniformly
    and is not read. With READ every answer is right; without it (z zero) the last token is told.
    """
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        model = Reader()
        for part in ("query", "key", "output"):
            model.get_parameter(f"encoder.0.self.{part}.weight").zero_()
        for part in (*PARTS, "output"):
            model.get_parameter(f"encoder.0.self.{part}.bias").zero_()
        query, key, value = (model.get_parameter(f"encoder.0.self.{part}.weight")[7:] for part in PARTS)
        query[0, 7:] = 100
        key[0, 7] = 1
        value.copy_(torch.eye(7, 12))
        model.get_parameter("encoder.0.self.output.weight")[:7, 7:] = 2 * torch.eye(7)
        model.readout.weight.copy_(torch.eye(7, 12) * 20)
        tokens = torch.randint(SYMBOLS, (count, 5))
    return model.eval(), Examples((tokens,), tokens[:, 0])
