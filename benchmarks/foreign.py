"""Ablating every head of models of others against a plain loop with one hook a head, in turn.

    pip install -c constraints.txt -e '.[bench]'      # timm and transformers
    python benchmarks/foreign.py                      # a table, a quarter of an hour on two idle cores
    python benchmarks/foreign.py --json               # the same as JSON
    python benchmarks/foreign.py --out results/foreign/speed.json

The models are timm's vit_tiny_patch16_224 and a BERT of the size of BERT-mini, both with random weights and
read at their cls token. The plain loop is what one writes first: for each head a forward hook before the
output projection that puts zero where the head's values come in, and a full pass of the module itself, not
wrapped, in inference mode. It has the number of torch's threads and the size of batches that are fastest
for it, tried in short before. Both ways must find the same: the mean loss without each head to ``LOSSES``,
and the number of right answers but for ``APART``, since sums in another order may tip what is nearly even.
Labels are what the whole model answers. Each round takes another share of the examples, one way after the
other, and ratios are taken within a round, so that a slow minute touches both.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
import tyro
from libraries import library
from torch import Tensor, nn

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import zero_baseline
from attnlab.analysis.subjects import Subject
from attnlab.front.any_model import AnyModel, examples, wrap
from attnlab.runs import describe_environment
from attnlab.sets import Examples
from attnlab.storage import write_json

APART = 1  # right answers
LOSSES = 1e-5
TRIED = 100  # examples on which threads and batches of the plain loop are tried, with one head out

Found = dict[str, tuple[int, float]]
"""Right answers and mean loss without each head."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    models: tuple[str, ...] = ("vit-tiny", "bert-mini")
    examples: int = 500
    rounds: int = 5
    """Each way is timed so often, in turn, on as large a share of the examples."""
    threads: int = 2
    """Workers of ours; the plain loop is tried with one thread and with so many."""
    batches: tuple[int, ...] = (8, 32, 100)
    """Sizes of batches that the plain loop is tried with."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


@dataclass(frozen=True)
class Case:
    """A module, how it is wrapped, the map that mixes the heads of a site, and examples."""

    module: nn.Module
    model: AnyModel
    output: Callable[[str], str]
    data: Examples


def main(options: Options) -> None:
    result = {name: measure(MODELS[name](options.examples), options) for name in options.models}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/foreign.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    print(json.dumps(result, indent=1) if options.json else table(result))


def vit_tiny(count: int) -> Case:
    timm = library("timm")
    torch.manual_seed(0)
    module: nn.Module = timm.create_model("vit_tiny_patch16_224", num_classes=10).eval()
    model = wrap(module, reads="cls")
    return Case(
        module, model, lambda path: f"{path}.proj", labelled(module, torch.randn(count, 3, 224, 224))
    )


def bert_mini(count: int) -> Case:
    transformers = library("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=256, num_attention_heads=4, num_hidden_layers=4, intermediate_size=1024, num_labels=10
    )
    module: nn.Module = transformers.BertForSequenceClassification(config).eval()
    tokens = torch.randint(1000, config.vocab_size, (count, 128))
    model = wrap(module, inputs=(tokens[:2],), reads="cls")
    return Case(
        module, model, lambda path: f"{path.rpartition('.')[0]}.output.dense", labelled(module, tokens)
    )


MODELS: dict[str, Callable[[int], Case]] = {"vit-tiny": vit_tiny, "bert-mini": bert_mini}


@torch.inference_mode()
def labelled(module: nn.Module, inputs: Tensor) -> Examples:
    """Inputs with what the whole model answers to them."""
    said = [logits_of(module(part)).argmax(dim=1) for part in torch.split(inputs, 50)]
    return examples(inputs, torch.cat(said))


def logits_of(given: Any) -> Tensor:
    found: Tensor = getattr(given, "logits", given)
    return found


def measure(case: Case, options: Options) -> dict[str, Any]:
    """All figures of one model; numbers that differ end it."""
    heads = [head for site in case.model.sites() for head in site.head_names]
    threads, batch = better(case, heads[:1], options)
    rounds, differences = [], list[tuple[int, float]]()
    right = dict.fromkeys(heads, 0)
    share = -(-len(case.data) // options.rounds)
    for start in range(0, len(case.data), share):
        part = replace(case, data=case.data[slice(start, start + share)])
        seconds = {}
        seconds["ours"], mine = timed(partial(ours, part, heads), options.threads)
        seconds["plain"], yours = timed(partial(plain, part, heads, batch), threads)
        differences.append(compare(mine, yours))
        right = {head: right[head] + mine[head][0] for head in heads}
        rounds.append(seconds)
    return {
        "ratio": median(row["plain"] / row["ours"] for row in rounds),
        "ratio_lowest": min(row["plain"] / row["ours"] for row in rounds),
        "seconds": sum(row["ours"] for row in rounds),
        "plain_seconds": sum(row["plain"] for row in rounds),
        "threads": options.threads,
        "plain_threads": threads,
        "plain_batch": batch,
        "examples": len(case.data),
        "heads": len(heads),
        "most_answers_apart": max(answers for answers, _ in differences),
        "most_loss_apart": max(loss for _, loss in differences),
        "right_without": right,
        "rounds": rounds,
    }


def compare(mine: Found, yours: Found) -> tuple[int, float]:
    """How far the numbers are apart, at most; too far ends it."""
    answers = max(abs(mine[head][0] - yours[head][0]) for head in yours)
    loss = max(abs(mine[head][1] - yours[head][1]) for head in yours)
    if answers > APART or loss > LOSSES:
        raise SystemExit(f"the ways differ by {answers} right answers and {loss:.1e} in the loss")
    return answers, loss


def ours(case: Case, heads: list[str]) -> Found:
    subject = Subject(case.model, case.data, {}, ["class"])
    sets = [frozenset((head,)) for head in heads]
    found = evaluate_without(subject, sets, zero_baseline(case.model))
    each = {head: found[frozenset((head,))] for head in heads}
    return {head: (int(answers.exact.sum()), answers.mean_loss) for head, answers in each.items()}


@torch.inference_mode()
def plain(case: Case, heads: list[str], batch: int) -> Found:
    """One hook and one full pass a head."""
    found = {}
    for head in heads:
        right, loss = 0, 0.0
        with without(case, head):
            for start in range(0, len(case.data), batch):
                part = case.data[slice(start, start + batch)]
                logits = logits_of(case.module(*part.inputs))
                right += int((logits.argmax(dim=1) == part.targets).sum())
                loss += F.cross_entropy(logits, part.targets, reduction="sum").item()
        found[head] = right, loss / len(case.data)
    return found


@contextmanager
def without(case: Case, head: str) -> Iterator[None]:
    """A hook on the output projection that puts zero where the head's values come in."""
    path, _, index = head.rpartition(".")
    site = next(site for site in case.model.sites() if site.path == path)

    def clear(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mixed = given[0].clone()
        width = mixed.shape[-1] // site.heads
        mixed[..., int(index) * width : (int(index) + 1) * width] = 0
        return (mixed,)

    hook = case.module.get_submodule(case.output(path)).register_forward_pre_hook(clear)
    try:
        yield
    finally:
        hook.remove()


def better(case: Case, heads: list[str], options: Options) -> tuple[int, int]:
    """The number of threads and the size of batches with which the plain loop is fastest."""
    few = replace(case, data=case.data[slice(0, TRIED)])
    spent = {
        (threads, batch): min(timed(partial(plain, few, heads, batch), threads)[0] for _ in range(3))
        for threads, batch in product(sorted({1, options.threads}), options.batches)
    }
    return min(spent, key=spent.__getitem__)


def timed(way: Callable[[], Found], threads: int) -> tuple[float, Found]:
    torch.set_num_threads(threads)
    began = time.perf_counter()
    found = way()
    return time.perf_counter() - began, found


def table(result: dict[str, Any]) -> str:
    lines = []
    for name, found in result.items():
        shown = {key: value for key, value in found.items() if key not in ("rounds", "right_without")}
        lines += [name, *(f"  {key:20}{value:>12.4g}" for key, value in shown.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main(tyro.cli(Options))
