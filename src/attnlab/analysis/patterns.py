"""Where every head looks: the attention patterns of one example."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.decoding import decode, fed
from attnlab.models import Seq2Seq, attentions
from attnlab.taps import record
from attnlab.tasks import Addition


@dataclass(frozen=True)
class AttentionPatterns:
    """Patterns (H, T, S) of one attention, with a sign for each query and each key."""

    attention: str
    pattern: Float[Tensor, "H T S"]
    queries: list[str]
    keys: list[str]


@torch.no_grad()
def attention_patterns(task: Addition, model: Seq2Seq, pair: Int[Tensor, "2"]) -> list[AttentionPatterns]:
    """Every attention's patterns while the model adds ``pair`` greedily.

    A row of a decoder is labelled with the token that goes in at that place; what comes out stands in
    the next row.
    """
    pairs = pair[None]
    source, target = task.source(pairs), fed(task, decode(task, model, pairs))
    with record(model, "*.pattern") as seen:
        model(source, target)
    given, said = task.symbols(source[0]), task.symbols(target[0])
    found = []
    for name in attentions(model):
        queries = given if name.startswith("encoder") else said
        keys = said if name.startswith("decoder") and name.endswith("self") else given
        found.append(AttentionPatterns(name, seen[f"{name}.pattern"][0], queries, keys))
    return found
