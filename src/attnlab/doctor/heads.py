"""Faults of single heads: those that look everywhere alike, that do the same, or that nothing reads."""

import math
from itertools import combinations
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.doctor.causes import BROKEN, SHALLOW, UNREACHED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import DEAD, FAINT, GOOD, MANY_DEAD, ROUNDING, UNIFORM
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.scores import scales_of
from attnlab.doctor.usual import livelier
from attnlab.model import Site
from attnlab.taps import edit, record


def entropies(patient: Patient) -> dict[str, float]:
    """The mean entropy of the rows of each head over the largest possible; rows that see one key do not
    count.
    """
    return patient.once("entropies", lambda: _entropies(patient))


def _entropies(patient: Patient) -> dict[str, float]:
    found = {}
    for site in patient.sites:
        scores, pattern = (patient.seen[f"{site.path}.{part}"] for part in ("scores", "pattern"))
        visible = scores > -torch.inf
        mask = patient.model.mask_at(site.path, *patient.inputs) if site.kind == "self" else None
        if mask is not None and mask.shape[1] == visible.shape[2]:
            visible = visible & mask[:, None, :, None]
        for index, name in enumerate(site.head_names):
            own = pattern[:, index]
            count = visible[:, index].sum(dim=-1)
            rows = count > 1
            if rows.any():
                each = torch.special.entr(own.clamp(min=0)).sum(dim=-1)[rows] / count[rows].log()
                found[name] = each.mean().item()
    if not found:
        raise InapplicableError("no query of any attention sees more than one key")
    return found


@final
class UniformHeads(Fault):
    """All heads of an attention look at every key alike, so they choose nothing."""

    kind = "heads-uniform"
    family = "attention"
    source = "probe"
    looks_at = "entropy of the patterns of every head"
    limits = (UNIFORM, FAINT, GOOD)
    explains = ("decoding-disagrees", *SHALLOW)

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_alive()
        if faint := _faint(patient):
            return self._scaled_down(patient, faint)
        found = entropies(patient)
        paths = [site for site in patient.sites if _all_uniform(patient, site.path)]
        if not paths:
            return None
        every = len(paths) == len(patient.sites)
        poor = patient.accuracy < GOOD.value
        severity: Severity = "serious" if every and poor else "warning" if poor else "note"
        text = f"every head of {', '.join(site.path for site in paths)} gives all keys the same weight"
        remedy = Remedy(
            "check that q and k reach the scores; another rate, a larger gain of the first W_q and W_k, "
            "or warm-up lets patterns form",
            settings=livelier(patient),
        )
        evidence = {
            "lowest entropy of these heads (1 is uniform)": min(
                found[n] for s in paths for n in s.head_names
            )
        }
        return self.finding(severity, 0.8 if every else 0.4, text, evidence, remedy)

    def _scaled_down(self, patient: Patient, faint: dict[str, float]) -> Finding:
        """Scores that a tiny factor keeps at 0."""
        text = f"the scores of {', '.join(faint)} are next to nothing whatever q and k are"
        remedy = Remedy(
            "divide the products of q and k by the root of the width of a head, and by nothing else",
            code="scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])",
        )
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "note"
        evidence = {f"scale · √K at {path}": scale for path, scale in faint.items()}
        return self.finding(severity, 0.9, text, evidence, remedy, from_start=True)


def _faint(patient: Patient) -> dict[str, float]:
    """Attentions whose scores are far smaller than they would be if they were scaled twice."""
    try:
        scales = scales_of(patient)
    except UncheckedError:
        return {}
    widths = {path: patient.seen[f"{path}.q"].shape[-1] for path in scales}
    faint = {
        path: scale for path, scale in scales.items() if 0 <= scale * math.sqrt(widths[path]) < FAINT.value
    }
    return {path: scale for path, scale in faint.items() if scale > 0 or _all_uniform(patient, path)}


def _all_uniform(patient: Patient, path: str) -> bool:
    """Whether no head of an attention chooses."""
    (site,) = (each for each in patient.sites if each.path == path)
    found = entropies(patient)
    return all(found.get(name, 0.0) >= UNIFORM.value for name in site.head_names)


@final
class DuplicatedHeads(Fault):
    """Two heads of an attention give the same output for every token."""

    kind = "heads-duplicated"
    family = "attention"
    source = "probe"
    looks_at = "z of every two heads of an attention"
    limits = (ROUNDING, GOOD)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        pairs = {}
        for site in patient.sites:
            z = patient.seen[f"{site.path}.z"]
            for a, b in combinations(range(site.heads), 2):
                size = z[:, a].norm()
                apart = ((z[:, a] - z[:, b]).norm() / size.clamp(min=1e-12)).item()
                if size > 0 and apart < ROUNDING.value:
                    pairs[f"{site.head_names[a]} and {site.head_names[b]}"] = apart
        if not pairs:
            return None
        text = f"these heads do the same: {'; '.join(list(pairs)[:5])}"
        remedy = Remedy(
            "give each head first weights of its own; heads that start alike get the same gradient"
        )
        evidence = {f"distance of z of {pair}": apart for pair, apart in list(pairs.items())[:5]}
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "warning"
        return self.finding(severity, 0.9, text, evidence, remedy, from_start=True)


@final
class DeadHeads(Fault):
    """Heads whose output no logit depends on."""

    kind = "heads-dead"
    family = "attention"
    source = "probe"
    looks_at = "logits with z of each head set to zero"
    limits = (DEAD, MANY_DEAD, GOOD)
    explains = ("input-ignored", *UNREACHED)

    def examine(self, patient: Patient) -> Finding | None:
        if mute := mute_attentions(patient):
            return self._muted(patient, mute)
        patient.require_alive()
        moved = {
            name: _moved(patient, site, index)
            for site in patient.sites
            for index, name in enumerate(site.head_names)
        }
        dead = [name for name, change in moved.items() if change <= DEAD.value]
        if not dead:
            return None
        share = len(dead) / len(moved)
        worst = max(sum(name in dead for name in site.head_names) / site.heads for site in patient.sites)
        many, poor = worst > MANY_DEAD.value, patient.accuracy < GOOD.value
        began = many and _dead_from_start(patient, dead)
        severity: Severity = "serious" if began and poor else "warning" if many and poor else "note"
        more = " ..." if len(dead) > 8 else ""
        text = f"{len(dead)} of {len(moved)} heads change no logit: {', '.join(dead[:8])}{more}"
        remedy = Remedy(
            "check that the output projection of these heads is trained and not zero; heads that are not "
            "needed can be removed",
            command="attnlab prune RUN --loss 0.001",
        )
        evidence = {"share of heads that are dead": share, "share of the heads of an attention": worst}
        sure = 0.95 if began else 0.45
        return self.finding(severity, sure, text, evidence, remedy, from_start=began)

    def _muted(self, patient: Patient, mute: list[str]) -> Finding:
        """Attentions whose output is the same whatever their heads say."""
        text = f"what the heads of {', '.join(mute)} say changes nothing of the attention's output"
        remedy = Remedy(
            "check that z reaches the output projection, and that its weights are not zero",
            code="return self.output(z.transpose(1, 2).flatten(2))",
        )
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "note"
        evidence = {"attentions whose heads are all dead": float(len(mute))}
        return self.finding(severity, 0.95, text, evidence, remedy, from_start=True)


def mute_attentions(patient: Patient) -> list[str]:
    """Attentions whose z varies and whose output does not, now and when training began."""
    try:
        before = _constant_outputs(patient.beginning)
    except UncheckedError:
        before = _constant_outputs(patient)
    return [path for path in _constant_outputs(patient) if path in before]


def _constant_outputs(patient: Patient) -> list[str]:
    names = [f"{site.path}.{part}" for site in patient.sites for part in ("z", "out")]
    with record(patient.model, *names) as seen:
        patient.ask(*patient.inputs)
    return [
        site.path
        for site in patient.sites
        if not _varies(seen[f"{site.path}.out"].flatten(0, -2))
        and _varies(seen[f"{site.path}.z"].transpose(1, 2).flatten(0, 1).flatten(1))
    ]


def _varies(rows: Tensor) -> bool:
    """Whether any two rows differ."""
    return bool((rows.amax(dim=0) > rows.amin(dim=0)).any())


def _dead_from_start(patient: Patient, dead: list[str]) -> bool:
    """Whether no logit depended on these heads before the first step; true where that is not known, since
    training hardly ever makes a head's output exactly zero.
    """
    try:
        before = patient.beginning
        return all(
            _moved(before, site, index) <= DEAD.value
            for site in before.sites
            for index, name in enumerate(site.head_names)
            if name in dead
        )
    except UncheckedError:
        return True


def _moved(patient: Patient, site: Site, index: int) -> float:
    """The largest change of a logit without a head."""

    def without(z: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
        return z.index_fill(1, torch.tensor([index], device=z.device), 0.0)

    with edit(patient.model, {f"{site.path}.z": without}):
        return patient.change(*patient.inputs).max().item()


FAULTS = (UniformHeads, DuplicatedHeads, DeadHeads)
