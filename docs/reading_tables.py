"""What docs show about reading digits and grids: how soon, how fast, and in one sentence."""

from statistics import median
from typing import Any

from head_tables import read

from attnlab.analysis import percent


def time_table() -> str:
    """How soon short trainings reach what the reference reached."""
    rows = [
        "| training | right, each seed | trained in | all epochs of the reference | ratio, lowest |",
        "|---|---|---|---|---|",
    ]
    commands: list[str] = []
    for task in ("digits", "grids"):
        found = read(f"{task}/time.json")
        commands.append(f"`{found['command']}`")
        for epochs in sorted({row["epochs"] for row in found["rows"]}):
            same = [row for row in found["rows"] if row["epochs"] == epochs]
            rows.append(_time_row(task, found, epochs, same))
    machine = found["environment"]
    told = f"Times are medians; {machine['cores']} cores, {machine['processor']}."
    return "\n".join([*rows, "", f"{told} {' '.join(commands)}"])


def _time_row(task: str, found: dict[str, Any], epochs: int, rows: list[dict[str, Any]]) -> str:
    each = ", ".join(percent(row[found["measure"]]) for row in rows)
    spent, whole = (median(row[name] for row in rows) for name in ("seconds", "reference_seconds"))
    return (
        f"| `{task}`, `{found['preset']}`, {epochs} epoch{'s' if epochs > 1 else ''} | {each} "
        f"| {spent:.0f} s | {whole / 60:.0f} min (`{found['reference']['preset']}`) "
        f"| {min(row['ratio'] for row in rows):.1f} |"
    )


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


def calibration_table() -> str:
    """Probabilities of the shipped readers with and without their temperature."""
    rows = [
        "| run | temperature | digits correct | mean probability before, after | ECE before, after |",
        "|---|---|---|---|---|",
    ]
    commands: list[str] = []
    for name in ("digit", "grid"):
        found = read(f"calibration/{name}.json")
        test, commands = found["test"], [*commands, f"`{found['command']}`"]
        before, after = test["plain"], test["calibrated"]
        rows.append(
            f"| `{found['run']}` | {found['temperature']:.3f} "
            f"| {percent(test['accuracy'])} of {test['digits']:,} "
            f"| {percent(before['confidence'])}, {percent(after['confidence'])} "
            f"| {percent(before['ece'])}, {percent(after['ece'])} |"
        )
    told = "Test images; temperatures are fitted on validation images, and no answer changes."
    return "\n".join([*rows, "", f"{told} {' '.join(commands)}"])


def wild_table() -> str:
    """How pictures that are not MNIST's are read, on the half of the sources that was held out."""
    found = read("wild/wild.json")
    rows = [
        "| pictures | correct | 95% interval | of | not sure | wrong and sure |",
        "|---|---|---|---|---|---|",
    ]
    groups = [(f"**{row['group']}**", row) for row in found["groups"]]
    photos = [(row["condition"], row) for row in found["conditions"] if row["group"] == "photos"]
    for name, row in (*groups, *photos):
        low, high = map(percent, row["interval"])
        share, counts = percent(row["accuracy"]), (row["pictures"], row["not_sure"], row["wrong"])
        pictures, unsure, wrong = (f"{count:,}" for count in counts)
        rows.append(f"| {name} | {share} | {low} to {high} | {pictures} | {unsure} | {wrong} |")
    curve = "; ".join(
        f"at {percent(point['threshold'])} {percent(point['answered'])} answered, "
        f"{percent(point['accuracy'])} of these correctly"
        for point in found["coverage"]
        if point["threshold"] in (0.7, 0.9, 0.99) and point["accuracy"] is not None
    )
    return "\n".join(
        [
            *rows,
            "",
            f"{found['pictures']:,} pictures; {found['fonts']} fonts in both halves. Single digits, "
            f'"not sure" below a probability: {curve}. `{found["command"]}`',
        ]
    )


def muon_line() -> str:
    """What Muon for stacks of matrices gains over torch's, in one line."""
    found = read("muon/step.json")
    rows, machine = found["presets"], found["environment"]
    steps = min(row["learned"]["steps"] for row in rows.values())
    each = ", ".join(f"{100 * (row['ratio'] - 1):.0f}% in `{name}`" for name, row in rows.items())
    return (
        "Muon takes matrices of one shape together, and kernels of convolutions too. With "
        f"`torch.optim.Muon` a training step takes longer: {each} (medians of rounds in turn; "
        f"{machine['cores']} cores, {machine['processor']}). After {steps} steps all weights have the same "
        f"bytes. `{found['command']}`"
    )


def _best(spent: dict[str, float], way: str) -> float:
    """Milliseconds with the number of threads that suits ``way``."""
    return min(value for name, value in spent.items() if name.startswith(f"{way}, "))


def reading_summary() -> str:
    """How well the presets read, with convolutions in front of digits and without, in two sentences."""
    vit, plain = (_said("digits-vit", name, "accuracy") for name in ("vit", "linear patches"))
    grids = _said("grids-seeds", "default", "exact_match")
    commands = [read(f"{name}/study.json")["command"] for name in ("digits-vit", "grids-seeds")]
    return (
        f"A vision transformer of four layers behind five convolutions classifies {vit} of the 10,000 "
        f"test digits correctly, and without any convolution {plain}. The encoder-decoder reads all four "
        f"digits of {grids} of 10,000 test grids correctly. `{commands[0]}` `{commands[1]}`"
    )


def _said(study: str, variant: str, measure: str) -> str:
    """The mean of a measure and what each seed reached."""
    (found,) = (each for each in read(f"{study}/study.json")["variants"] if each["name"] == variant)
    each = ", ".join(percent(value) for value in found["measures"][measure]["values"])
    return f"{percent(found['measures'][measure]['mean'])} (seeds {each})"
