"""Faults of single heads: those that look everywhere alike, that do the same, or that nothing reads."""

from itertools import combinations
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import DEAD, GOOD, MANY_DEAD, ROUNDING, UNIFORM
from attnlab.doctor.patient import InapplicableError, Patient
from attnlab.model import Site
from attnlab.taps import edit


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
    limits = (UNIFORM, GOOD)

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_alive()
        found = entropies(patient)
        paths = [
            site
            for site in patient.sites
            if all(found.get(name, 0.0) >= UNIFORM.value for name in site.head_names)
        ]
        if not paths:
            return None
        every = len(paths) == len(patient.sites)
        poor = patient.accuracy < GOOD.value
        severity: Severity = "serious" if every and poor else "warning" if poor else "note"
        text = f"every head of {', '.join(site.path for site in paths)} gives all keys the same weight"
        remedy = Remedy(
            "check that q and k reach the scores; a higher rate, a larger gain of the first W_q and W_k, "
            "or warm-up lets patterns form"
        )
        evidence = {
            "lowest entropy of these heads (1 is uniform)": min(
                found[n] for s in paths for n in s.head_names
            )
        }
        return self.finding(severity, 0.8 if every else 0.5, text, evidence, remedy)


@final
class DuplicatedHeads(Fault):
    """Two heads of an attention give the same output for every token."""

    kind = "heads-duplicated"
    family = "attention"
    source = "probe"
    looks_at = "z of every two heads of an attention"
    limits = (ROUNDING,)

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
        return self.finding("warning", 0.9, text, evidence, remedy)


@final
class DeadHeads(Fault):
    """Heads whose output no logit depends on."""

    kind = "heads-dead"
    family = "attention"
    source = "probe"
    looks_at = "logits with z of each head set to zero"
    limits = (DEAD, MANY_DEAD, GOOD)

    def examine(self, patient: Patient) -> Finding | None:
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
        many, poor = share > MANY_DEAD.value, patient.accuracy < GOOD.value
        severity: Severity = "serious" if share == 1 and poor else "warning" if many and poor else "note"
        more = " ..." if len(dead) > 8 else ""
        text = f"{len(dead)} of {len(moved)} heads change no logit: {', '.join(dead[:8])}{more}"
        remedy = Remedy(
            "check that the output projection of these heads is trained and not zero; heads that are not "
            "needed can be removed",
            command="attnlab prune RUN --loss 0.001",
        )
        return self.finding(
            severity, 0.9 if many else 0.5, text, {"share of heads that are dead": share}, remedy
        )


def _moved(patient: Patient, site: Site, index: int) -> float:
    """The largest change of a logit without a head."""

    def without(z: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
        return z.index_fill(1, torch.tensor([index], device=z.device), 0.0)

    with edit(patient.model, {f"{site.path}.z": without}):
        return patient.change(*patient.inputs).max().item()


FAULTS = (UniformHeads, DuplicatedHeads, DeadHeads)
