"""Heads across seeds: what the runs of each variant have in common."""

from collections.abc import Mapping
from typing import Any

from attnlab.analysis.matching import Behaviour, count_roles, match_heads
from attnlab.runs import Run
from attnlab.spec import to_json
from attnlab.studies.measures import read_analysis


def compare_heads(variants: Mapping[str, Mapping[int, Run]]) -> list[dict[str, Any]]:
    """Roles and matched heads of each variant with at least two runs; ``variants`` hold runs by seed."""
    found = []
    for variant, runs in variants.items():
        if len(runs) > 1:
            behaviours = {
                seed: Behaviour.from_json(read_analysis(run, "behaviour")) for seed, run in runs.items()
            }
            found.append(
                {
                    "variant": variant,
                    "seeds": list(runs),
                    "roles": to_json(count_roles(behaviours)),
                    "kinds": to_json(match_heads(behaviours)),
                }
            )
    return found
