"""Matching: which heads of different runs do the same, and which roles recur."""

from attnlab.analysis.matching.behaviour import Behaviour, behaviour_run
from attnlab.analysis.matching.matching import match_heads
from attnlab.analysis.matching.roles import count_roles, roles_of

__all__ = ["Behaviour", "behaviour_run", "count_roles", "match_heads", "roles_of"]
