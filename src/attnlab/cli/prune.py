"""``attnlab prune``: choose heads that can go together, and really remove them."""

from shlex import quote

from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, RunName
from attnlab.cli.train import stopped
from attnlab.display import say
from attnlab.front.loading import load


def command(
    run: RunName,
    *,
    keep: int | None = None,
    loss: float | None = None,
    finetune: int = 0,
    method: PruningMethod = "greedy",
    repair: Repair = "refit",
    examples: int = 1000,
    out: str = "",
    json: Json = False,
) -> int:
    """Remove heads that are chosen jointly, and keep the smaller model as a run of its own.

    Heads are chosen by validation examples and really removed: their weights are gone. The smaller model's
    logits are compared with those of the masked model each time. Test examples are scored once, at the end.

    Example: attnlab prune zoo:adder --keep 5

    Args:
        keep: How many heads to keep.
        loss: Instead: keep the fewest heads with which exact match falls by less than this, such as 0.01.
        finetune: Steps of training after heads are removed.
        method: greedy removes one head after the other and measures the rest again; gates learns which to
            close.
        repair: What makes up for removed heads: refit fits the linear maps behind all sublayers again by
            least squares; optimal and mean put a constant in a head's place and change nothing else.
        examples: Training examples to fit on, and validation examples to choose heads on.
        out: Run folder to create; by default runs/NAME-pruned-HEADS, numbered if taken.
    """
    child = load(run).prune(
        keep=keep,
        loss=loss,
        finetune=finetune,
        method=method,
        repair=repair,
        examples=examples,
        out=out,
    )
    found = child.pruning
    if found is None:
        return stopped(child)
    print_result(found, json=json)
    save_figures(found, child, "")
    say(f"next: attnlab evaluate {quote(str(child.path))}")
    return 0
