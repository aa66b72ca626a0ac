"""Faults of what reaches the output: positions, the residual stream, the memory, what is pooled, chance.

Each is asked of the model from outside, by changing an input or by setting the output of one part to zero.
"""

from typing import Any, final

import torch
from torch import Tensor

from attnlab.doctor.causes import BROKEN, UNREACHED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.heads import mute_attentions
from attnlab.doctor.limits import GOOD, ROUNDING, SATURATED
from attnlab.doctor.masks import causal_fault
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError, asking, own_tokens
from attnlab.doctor.remedies import own_default
from attnlab.doctor.usual import livelier
from attnlab.model import Side
from attnlab.models.images import cut_patches, shuffle_patches
from attnlab.taps import edit

_ORDER = 49
"""Seed of the order in which parts of the input are exchanged."""


@final
class PositionsIgnored(Fault):
    """The parts of the input may stand in any order, or from its end to its beginning: no logit changes."""

    kind = "positions-ignored"
    family = "attention"
    source = "probe"
    looks_at = "logits of inputs whose tokens or patches are put in another order, or reversed"
    limits = (ROUNDING, GOOD)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        if _with_other_input(patient) <= ROUNDING.value:
            raise UncheckedError("no logit depends on the input")
        if mute := mute_attentions(patient):
            raise UncheckedError(f"what the heads of {', '.join(mute)} say changes nothing, place or not")
        moved, text = patient.change(*_reordered(patient)).max().item(), _ANY_ORDER
        reversed_ = _reversed(patient) if moved > ROUNDING.value else None
        if reversed_ is not None:
            moved, text = patient.change(*reversed_).max().item(), _REVERSED
        if moved > ROUNDING.value:
            return None
        if moved > ROUNDING.value * patient.influence:  # so near to nothing that order cannot be told
            raise UncheckedError("the logits hardly depend on the input")
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "note"
        remedy = Remedy(
            "let positions reach the model",
            settings=own_default(patient.known_spec, "positions"),
            code="x = embed(tokens) + positions[:T]",
        )
        evidence = {"largest change of a logit": moved, "accuracy": patient.accuracy}
        return self.finding(severity, 0.95 if severity == "serious" else 0.5, text, evidence, remedy)


_ANY_ORDER = "the order of the input changes no logit, so the model does not know where a token stands"
_REVERSED = (
    "the input reversed changes no logit: the model knows which tokens are neighbours, and not which of "
    "them comes first"
)


def _reversed(patient: Patient) -> list[Tensor] | None:
    """The inputs from their last token to their first; None where that cannot be or is nothing new."""
    first, *rest = patient.inputs
    mask = own_tokens(patient) if patient.model.patch_size is None else None
    if mask is None or first.shape != mask.shape or bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        return None
    places = torch.arange(first.shape[1], device=first.device).expand_as(first)
    last = mask.sum(dim=1, keepdim=True) - 1
    other = first.gather(1, torch.where(mask, last - places, places))
    return None if torch.equal(other, first) else [other, *rest]


def _reordered(patient: Patient) -> list[Tensor]:
    """The inputs with their parts in another order; padding stays where it is."""
    first, *rest = patient.inputs
    if len(patient.model.source) > 1:
        raise UncheckedError("its parts are spread over several inputs")
    chance = torch.Generator().manual_seed(_ORDER)
    if (patch := patient.model.patch_size) is not None:
        if first.dim() < 3 or first.shape[-1] % patch or first.shape[-2] % patch:
            raise UncheckedError("its input is not an image that can be cut into patches")
        order = torch.randperm(cut_patches(first[:1], patch).shape[1], generator=chance)
        return [shuffle_patches(first, patch, order.to(first.device)), *rest]
    if first.dim() != 2 or first.is_floating_point():
        raise UncheckedError("its input is not a sequence of tokens")
    mask = own_tokens(patient)
    length = first.shape[1] if mask is None else int(mask.long().cumprod(dim=1).sum(dim=1).min())
    order = torch.randperm(length, generator=chance).to(first.device)
    if patient.logits.dim() == 3 and len(patient.inputs) == 1:
        raise InapplicableError("its logits stand at the tokens themselves")
    other = torch.cat((first[:, :length][:, order], first[:, length:]), dim=1)
    if torch.equal(other, first):
        raise UncheckedError("the probed inputs are the same in any order")
    return [other, *rest]


@final
class PositionsSaturated(Fault):
    """The vectors of places are so large that the tokens drown in them."""

    kind = "positions-saturated"
    family = "attention"
    source = "probe"
    looks_at = "spread of the vectors that are added for places and of those of the tokens"
    limits = (SATURATED, GOOD)
    explains = ("gradients-vanish", "gradients-explode", *BROKEN)

    def examine(self, patient: Patient) -> Finding | None:
        model = patient.model
        path = model.input_path
        slots = [each for each in model.stack_positions().values() if each.add is not None]
        if path is None or not slots:
            raise InapplicableError("no vectors of places are added that can be read")
        tokens = list[Tensor]()
        hook = model.get_submodule(path).register_forward_hook(lambda *given: tokens.append(given[-1]))
        try:
            patient.ask(*patient.inputs)
        finally:
            hook.remove()
        with torch.no_grad():
            if not tokens[0].std():
                raise UncheckedError("the vectors of all tokens are the same")
            places = slots[0].at(tokens[0].shape[1], tokens[0])
            added = places.embed(torch.zeros_like(tokens[0][:1]))[0]
        ratio = (added.std() / tokens[0].std().clamp(min=1e-12)).item()
        if ratio < SATURATED.value:
            return None
        text = f"the vectors of places are {ratio:.0f} times as large as those of tokens"
        remedy = Remedy(
            "make positions smaller",
            code="positions = nn.Parameter(0.02 * torch.randn(T, width))",
            settings=own_default(patient.known_spec, "positions"),
        )
        poor = patient.accuracy < GOOD.value
        evidence = {"spread of places over spread of tokens": ratio}
        return self.finding("serious" if poor else "note", 0.85, text, evidence, remedy)


@final
class ResidualMissing(Fault):
    """Without the output of one part nothing of the input gets past it: there is no sum around it.

    Around a model's only attention a sum hardly matters: the study ``patch-attention-parts`` gives -0.01
    points of accuracy (-0.20 to +0.25), so that is no more than a note.
    """

    kind = "residual-missing"
    family = "attention"
    source = "probe"
    looks_at = "whether logits still depend on the input with the output of one attention set to zero"
    limits = (ROUNDING,)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        blocked = _blocked(patient)
        if not blocked:
            return None
        try:
            before = _blocked(patient.beginning)
        except UncheckedError:
            before = blocked
        blocked = [path for path in blocked if path in before]  # training can block a way as well
        if not blocked:
            return None
        several = len(blocked) > 1
        text = f"nothing but the attention's output goes on behind {', '.join(blocked)}: no residual sum"
        remedy = Remedy(
            "add what the attention was given to what it gives",
            code="x = x + attention(norm(x))",
            settings={"model.residual": True},
        )
        severity: Severity = "serious" if several else "note" if len(patient.sites) == 1 else "warning"
        sure = 0.5 if severity == "note" else 0.9
        evidence = {"attentions without a sum": float(len(blocked))}
        return self.finding(severity, sure, text, evidence, remedy, from_start=True)


def _blocked(patient: Patient) -> list[str]:
    """Attentions without whose output nothing of the input gets on."""
    blocked, asked = [], 0
    for site in patient.sites:
        other = _other_inputs(patient, site.queries)
        if other is None:
            continue
        asked += 1
        with edit(patient.model, {f"{site.path}.out": torch.zeros_like}):
            moved = (
                (patient.ask(*patient.inputs) - patient.ask(*other)).abs().max() / patient.spread
            ).item()
        if moved <= ROUNDING.value and patient.change(*other).max() > ROUNDING.value:
            blocked.append(site.path)
    if not asked:
        raise UncheckedError("there is no other input to compare with")
    return blocked


def _other_inputs(patient: Patient, side: Side) -> list[Tensor] | None:
    """The inputs with other parts on one side; None where all examples have the same."""
    number = 0 if side == "input" else patient.fed
    inputs = list(patient.inputs)
    own = inputs[number]
    other = own.roll(1, 0)
    if side == "answer" and not own.is_floating_point():
        other = own.roll(1, 0).flip(1)
    if torch.equal(own, other):
        return None
    inputs[number] = other
    return inputs


@final
class NormMissing(Fault):
    """Several layers, and no norm in any of them."""

    kind = "norm-missing"
    family = "attention"
    source = "probe"
    looks_at = "modules that normalise, in a model of two attentions or more"
    explains = ("initial-loss-high", "gradients-vanish", "gradients-explode", *BROKEN)

    def examine(self, patient: Patient) -> Finding | None:
        if len(patient.sites) < 2:
            return None
        leaves = (part for part in patient.model.modules() if not any(part.children()))
        if any("norm" in type(part).__name__.lower() for part in leaves):
            return None
        text = f"{len(patient.sites)} attentions and no norm, so the size of values drifts"
        remedy = Remedy(
            "normalise what each part is given",
            code="x = x + attention(nn.LayerNorm(width)(x))",
            settings={"model.norm": True},
        )
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "warning"
        evidence = {"attentions": float(len(patient.sites))}
        return self.finding(severity, 0.85, text, evidence, remedy, from_start=True)


@final
class MemoryIgnored(Fault):
    """The answer does not depend on the input: cross attention ignores its memory."""

    kind = "memory-ignored"
    family = "attention"
    source = "probe"
    looks_at = "logits of the answer, as the whole input is exchanged for another"
    limits = (ROUNDING,)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        if len(patient.inputs) < 2 or patient.fed == 0:
            raise InapplicableError("there is no input other than the tokens of the answer")
        moved = _with_other_input(patient)
        if moved > ROUNDING.value:
            return None
        text = "the answer does not depend on the input: what the encoder makes never reaches the decoder"
        remedy = Remedy(
            "check that cross attention is given the memory, and that its output is added",
            code="x = x + cross(norm(x), memory)",
        )
        alive = _was_alive(patient)
        evidence = {"largest change of a logit": moved}
        return self.finding(
            "serious", 0.4 if alive else 1.0, text, evidence, remedy, from_start=alive is False
        )


@final
class InputIgnored(Fault):
    """No logit of a classifier depends on the input."""

    kind = "input-ignored"
    family = "attention"
    source = "probe"
    looks_at = "logits of a class, as the whole input is exchanged for another"
    limits = (ROUNDING,)
    explains = UNREACHED

    def examine(self, patient: Patient) -> Finding | None:
        if patient.logits.dim() != 2:
            raise InapplicableError("its answers are no classes")
        moved = _with_other_input(patient)
        if moved > ROUNDING.value:
            return None
        evidence = {"largest change of a logit": moved}
        alive = _was_alive(patient)
        if alive:
            text = "no logit depends on the input any more: the first weights let it through"
            remedy = Remedy(
                "training killed the way through, as a rate does that is too high or has no warm-up",
                settings=livelier(patient),
            )
            return self.finding("serious", 0.4, text, evidence, remedy)
        text = "no logit depends on the input: weights that died, or a part that nothing gets past"
        remedy = Remedy(
            "lower the rate if it learned at first; else look where values stop to differ, with record()"
        )
        sure = 0.6 if alive is None else 0.95
        return self.finding("serious", sure, text, evidence, remedy, from_start=alive is False)


def _was_alive(patient: Patient) -> bool | None:
    """Whether a logit depended on the input when training began; None where that is not known."""
    try:
        return _with_other_input(patient.beginning) > ROUNDING.value
    except UncheckedError:
        return None


def _with_other_input(patient: Patient) -> float:
    """The largest change of a logit as the input is exchanged for another, whose padding is the same where
    that is known: how long an input is can be seen by padding alone.
    """
    other = _other_inputs(patient, "input")
    if other is None:
        raise UncheckedError("all probed inputs are the same")
    first, own = patient.inputs[0], own_tokens(patient)
    if own is not None:
        other[0] = torch.where(own & own.roll(1, 0), other[0], first)
        if torch.equal(other[0], first):
            raise UncheckedError("the probed inputs differ in their padding alone")
    return patient.change(*other).max().item()


@final
class PoolingDilutes(Fault):
    """What is read of n tokens is their mean, so that one token counts 1/n."""

    kind = "pooling-dilutes"
    family = "attention"
    source = "probe"
    looks_at = "how far the pooled vector moves with one token, at different lengths"
    limits = (ROUNDING, GOOD)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        if patient.logits.dim() != 2:
            raise InapplicableError("its answers are no classes")
        mask = patient.model.input_mask(*patient.inputs)
        if mask is None or mask.all():
            raise InapplicableError("all probed inputs have the same length")
        shares, count = _pooled_shares(patient), mask.sum(dim=1)
        if (shares * count[:, None] - 1).abs().max() > ROUNDING.value * 10:
            return None
        poor = patient.accuracy < GOOD.value
        remedy = Remedy(
            "where one token decides, read the least or the greatest value, or a token in front",
            settings={"model.pooling": "min"},
        )
        ends = {"shortest": count.min().item(), "longest": count.max().item()}
        return self.finding(
            "warning" if poor else "note",
            0.4,
            "the readout sees the mean over tokens, so one token moves it by 1/n",
            {f"weight of a token, {name}": 1 / n for name, n in ends.items()},
            remedy,
        )


def _pooled_shares(patient: Patient) -> Tensor:
    """How far the pooled vector moves as the first tokens move by 1 (B, 2)."""
    pool = dict(patient.model.named_modules()).get(patient.model.read_path)
    if pool is None:
        raise UncheckedError("where it reads from its tokens is not known")
    calls = list[tuple[Any, ...]]()
    hook = pool.register_forward_pre_hook(lambda _, given: calls.append(given))
    try:
        patient.ask(*patient.inputs)
    finally:
        hook.remove()
    if len(calls) != 1 or not isinstance(calls[0][0], Tensor) or calls[0][0].dim() != 3:
        raise UncheckedError("where it reads from its tokens is not a pool of vectors")
    x, *more = calls[0]
    with asking():
        before = pool(x, *more)
        moved = []
        for place in range(2):
            other = x.clone()
            other[:, place] += 1
            moved.append((pool(other, *more) - before).flatten(1).mean(dim=1))
    return torch.stack(moved, dim=1)


@final
class DropoutInEvaluation(Fault):
    """Two passes over the same inputs differ in evaluation mode."""

    kind = "dropout-in-evaluation"
    family = "attention"
    source = "probe"
    looks_at = "logits of two passes in evaluation mode"
    limits = (ROUNDING,)
    explains = ("decoding-disagrees", "cache-disagrees")

    def examine(self, patient: Patient) -> Finding | None:
        moved = patient.noise
        if moved <= ROUNDING.value:
            return None
        text = (
            "two passes over the same inputs give different logits in evaluation mode: dropout is still on"
        )
        remedy = Remedy(
            "let dropout follow the mode of the module",
            code="F.dropout(x, p, training=self.training); model.eval()",
        )
        return self.finding("serious", 1.0, text, {"change between two passes": moved}, remedy)


@final
class CacheDisagrees(Fault):
    """Decoding token by token gives other logits than a full pass over the same tokens."""

    kind = "cache-disagrees"
    family = "attention"
    source = "probe"
    looks_at = "logits of the answer token by token, and all at once"
    limits = (ROUNDING,)
    explains = ("decoding-disagrees",)

    def examine(self, patient: Patient) -> Finding | None:
        if len(patient.inputs) != 2 or patient.fed != 1:
            raise InapplicableError("it does not answer token by token")
        if causal_fault(patient):
            raise InapplicableError("tokens of the answer see later ones, so both cannot agree")
        patient.require_still()
        source, fed = patient.inputs
        with asking():
            step = patient.model.begin(source)
            parts = [step(fed[:, place : place + 1]) for place in range(fed.shape[1])]
        apart = (torch.cat(parts, dim=1) - patient.logits).abs() / patient.spread
        if apart.max() <= ROUNDING.value:
            return None
        first = int((apart.amax(dim=(0, 2)) > ROUNDING.value).long().argmax())
        text = f"decoding token by token differs from a full pass from token {first + 1} on"
        remedy = Remedy(
            "check the place that a cached token is given, and what the cache keeps; or decode without it"
        )
        evidence = {
            "change with the cache": apart.max().item(),
            "first token that differs": float(first + 1),
        }
        return self.finding("serious", 0.95, text, evidence, remedy)


FAULTS = (
    PositionsIgnored,
    PositionsSaturated,
    ResidualMissing,
    NormMissing,
    MemoryIgnored,
    InputIgnored,
    PoolingDilutes,
    DropoutInEvaluation,
    CacheDisagrees,
)
