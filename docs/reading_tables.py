"""What docs show about reading digits: how fast, and in one sentence."""

from head_tables import read

from attnlab.analysis import percent


def step_table() -> str:
    """A training step beside that of others, and decoding."""
    found = read("digits/step.json")
    ways = ("attnlab", "torch", "timm", "x-transformers")
    rows = [f"| shape, products | {' | '.join(ways)} | best rival to ours |", "|---|---|---|---|---|---|"]
    for shape, step in found["steps"].items():
        for precision in ("float32", "bfloat16"):
            spent = [_best(step["milliseconds"], f"{way} {precision}") for way in ways]
            each = " | ".join(f"{value:.0f} ms" for value in spent)
            rows.append(f"| {shape}, {precision} | {each} | {step['ratios'][precision]:.2f} |")
        best = f"{step['ratios']['each at its best']:.2f}"
        rows.append(f"| {shape}, each at its best | | | | | {best} |")
    decoding, machine = found["decoding"], found["environment"]
    return "\n".join(
        [
            *rows,
            "",
            f"Batch {found['batch']}, with the number of threads that suits each, medians of "
            f"{len(step['rounds'])} rounds in turn; ratios are taken within rounds. Decoding "
            f"{decoding['tokens']} digits with cached keys and values is "
            f"{decoding['ratios']['cached']:.1f} times as fast as without. {machine['cores']} cores, "
            f"{machine['processor']}. `{found['command']}`",
        ]
    )


def _best(spent: dict[str, float], way: str) -> float:
    """Milliseconds with the number of threads that suits ``way``."""
    return min(value for name, value in spent.items() if name.startswith(f"{way}, "))


def reading_summary() -> str:
    """How well the preset reads, with convolutions in front of it and without, in one sentence."""
    result = read("digits-vit/study.json")
    said = []
    for variant in result["variants"]:
        found = variant["measures"]["accuracy"]
        each = ", ".join(percent(value) for value in found["values"])
        said.append(f"{percent(found['mean'])} (seeds {each})")
    return (
        f"A vision transformer of four layers behind five convolutions reads {said[0]} of the 10,000 test "
        f"digits rightly, and without any convolution {said[1]}. `{result['command']}`"
    )
