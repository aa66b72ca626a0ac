"""Draws the pictures that README and docs show, from the zoo: ``python docs/pictures.py``."""

from pathlib import Path

from attnlab.analysis import attention_patterns
from attnlab.figures import draw_patterns, patterns_data, to_svg
from attnlab.runs import load_task_and_model, open_run
from attnlab.storage import write_json, write_text

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    task, model = load_task_and_model(open_run("zoo:adder"))
    patterns = attention_patterns(task, model, "374+814")
    data = patterns_data([each for each in patterns if each.attention.endswith("cross")])
    write_text(FOLDER / "adder-cross.svg", to_svg(draw_patterns(data)))
    write_json(FOLDER / "adder-cross.json", data)


if __name__ == "__main__":
    main()
