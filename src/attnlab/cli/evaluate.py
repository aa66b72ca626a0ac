"""``attnlab evaluate``: how good a run is on data it was not trained on."""

from typing import Any

import tyro

from attnlab.analysis import evaluate_run, percent
from attnlab.analysis.evaluation import Split
from attnlab.cli.output import print_json, print_table, say
from attnlab.cli.parsing import parse
from attnlab.runs import open_run


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="evaluate")


def command(
    run: tyro.conf.Positional[str],
    *,
    split: Split = "test",
    json: bool = False,
) -> int:
    """Measure a run: sums by greedy decoding, carry chain and column, digits by class, lists by length,
    grids of digits by cell.

    Example: attnlab evaluate zoo:adder

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        split: Which examples; choose by valid, report test.
        json: Print JSON instead of tables.
    """
    found = evaluate_run(open_run(run), split)
    if json:
        print_json(found)
    elif "by_cell" in found:
        show_grids(found)
    elif "by_class" in found:
        show_digits(found)
    elif "by_length" in found:
        show_sorting(found)
    else:
        show(found)
    return 0


def show(found: dict[str, Any]) -> None:
    """Print what ``evaluate`` found."""
    forced = found["teacher_forced"]
    low, high = found["exact_match_interval"]
    print_table(
        f"{found['run']}: {found['examples']:,} {found['split']} examples",
        ("", "greedy decoding", "teacher forcing"),
        (
            ("exact match", percent(found["exact_match"]), percent(forced["exact_match"])),
            ("95% interval", f"{percent(low)} to {percent(high)}", ""),
            ("token accuracy", percent(found["token_accuracy"]), percent(forced["token_accuracy"])),
            ("loss", "", f"{forced['loss']:.5f}"),
        ),
    )
    print_table(
        "by longest carry chain",
        ("carries in a row", "examples", "exact match", "95% interval"),
        [
            (
                str(row["chain"]),
                f"{row['examples']:,}",
                percent(row["exact_match"]),
                _interval(row),
            )
            for row in found["by_chain"]
        ],
    )
    print_table(
        "by column, in the order of emission",
        ("column", "accuracy"),
        [(row["column"], percent(row["accuracy"])) for row in found["by_column"]],
    )


def show_digits(found: dict[str, Any]) -> None:
    """Print what ``evaluate`` found of a run that reads digits."""
    low, high = found["exact_match_interval"]
    print_table(
        f"{found['run']}: {found['examples']:,} {found['split']} images",
        ("accuracy", "95% interval", "loss"),
        [(percent(found["exact_match"]), f"{percent(low)} to {percent(high)}", f"{found['loss']:.4f}")],
    )
    print_table(
        "by class",
        ("digit", "images", "right", "95% interval", "most often taken for"),
        [_class_row(row, found["confusion"][row["class"]]) for row in found["by_class"]],
    )
    if found["sample"]:
        say(f"WARNING: measured on {found['data']}")


def show_grids(found: dict[str, Any]) -> None:
    """Print what ``evaluate`` found of a run that reads grids of digits."""
    forced = found["teacher_forced"]
    print_table(
        f"{found['run']}: {found['examples']:,} {found['split']} grids of {found['rows']} x "
        f"{found['columns']} digits",
        ("", "greedy decoding", "teacher forcing"),
        (
            ("grids wholly right", percent(found["exact_match"]), percent(forced["exact_match"])),
            ("95% interval", _interval(found), ""),
            ("digits right", percent(found["digit_accuracy"]), percent(forced["token_accuracy"])),
            ("grids, were digits independent", percent(found["if_independent"]), ""),
            ("loss", "", f"{forced['loss']:.5f}"),
        ),
    )
    print_table(
        "by cell, in the order of reading",
        ("row,column", "right", "95% interval"),
        [(row["cell"], percent(row["accuracy"]), _interval(row, "accuracy")) for row in found["by_cell"]],
    )
    print_table(
        "by digit",
        ("digit", "shown", "right", "95% interval", "most often taken for"),
        [_class_row(row, found["confusion"][row["class"]], "accuracy") for row in found["by_class"]],
    )
    if found["sample"]:
        say(f"WARNING: measured on {found['data']}")


def show_sorting(found: dict[str, Any]) -> None:
    """Print what ``evaluate`` found of a run that tells sorted lists."""
    print_table(
        f"{found['run']}: {found['examples']:,} {found['split']} lists, half of them sorted",
        ("accuracy", "95% interval", "of sorted", "of unsorted", "loss"),
        [
            (
                percent(found["exact_match"]),
                _interval(found),
                *(percent(found["right_of"].get(name, 0.0)) for name in ("sorted", "unsorted")),
                f"{found['loss']:.4f}",
            )
        ],
    )
    print_table(
        f"by length; unsorted lists by {found['negatives']}",
        ("length", "lists", "right", "95% interval"),
        [
            (str(row["length"]), f"{row['examples']:,}", percent(row["exact_match"]), _interval(row))
            for row in found["by_length"]
        ],
    )
    say("'attnlab lengths' measures other lengths")


def _interval(row: dict[str, Any], of: str = "exact_match") -> str:
    return " to ".join(percent(end) for end in row[f"{of}_interval"])


def _class_row(row: dict[str, Any], said: list[int], of: str = "exact_match") -> tuple[str, ...]:
    digit = row["class"]
    count, other = max((count, answer) for answer, count in enumerate(said) if answer != digit)
    return (
        str(digit),
        f"{row['examples']:,}",
        percent(row[of]),
        _interval(row, of),
        f"{other} ({count:,})" if count else "",
    )
