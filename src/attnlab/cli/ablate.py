"""``attnlab ablate``: what is lost when heads are taken out."""

from attnlab.analysis.choices import BaselineName
from attnlab.cli.drawing import figure_name, save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, RunName, Seed
from attnlab.front.loading import load
from attnlab.specs import Split


def command(
    run: RunName,
    *,
    baselines: tuple[BaselineName, ...] = ("optimal", "mean", "zero", "resample"),
    heads: tuple[str, ...] = (),
    pairs: bool = False,
    shapley: int = 0,
    split: Split = "valid",
    examples: int = 2000,
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> None:
    """Take out every head, alone and together with others, and measure what is lost.

    A head is taken out by putting a baseline in the place of its output: nothing (zero), its mean over
    training examples, its output for another example (resample), or the constant with the lowest loss
    (optimal). What is lost is exact match by greedy decoding, in percentage points.

    Example: attnlab ablate zoo:adder --baselines mean zero --pairs --shapley 50 --out figures

    Args:
        baselines: What takes the place of a head; the first is the one heads are ranked by.
        heads: Only these heads, such as decoder.0.cross.2.
        pairs: Also take out every two heads at once.
        shapley: Also estimate Shapley values, from this number of orders of the heads.
        split: Which examples.
        examples: How many of them, at most.
        seed: For what is drawn at random: orders, who is resampled, batches for the optimal constant.
        out: Folder for the figures (SVG, PNG, JSON); by default figures in the run folder, and none for a
            shipped run.
    """
    opened = load(run)
    found = opened.ablate(
        baselines=baselines,
        heads=heads,
        pairs=pairs,
        shapley=shapley,
        split=split,
        examples=examples,
        seed=seed,
    )
    name = "ablation" if out else figure_name("ablation", opened, f"ablate-{split}", found, "examples")
    print_result(found, json=json)
    save_figures(found, opened, out, name=name)
