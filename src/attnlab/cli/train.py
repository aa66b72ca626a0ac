"""``attnlab train``: from a preset, a spec file or flags to a trained run."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from attnlab.analysis import percent
from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import parse, take_option
from attnlab.display import say
from attnlab.errors import SpecError, brief
from attnlab.front.loading import load
from attnlab.front.run import Run
from attnlab.front.specs import check_options
from attnlab.presets import preset
from attnlab.reading import MOST_SPEC, read_json
from attnlab.registry import CODE, find_task, require_code, task_names
from attnlab.runs import check_unused
from attnlab.specs import Spec, from_json, whole_key
from attnlab.training.trackers import Tracker

EXIT_STOPPED = 130
OPTIONS = ("checkpoint", "doctor", "help", "json", "out", "show", "track")
"""Flags that are not keys of a spec."""

EXAMPLES = {
    "addition": "attnlab train addition --preset reference --model.heads 8 --training.epochs 20",
    "pictures": "attnlab train pictures --directory FOLDER",
    "digits": "attnlab train digits --preset vit --training.epochs 5 --show 4",
    "grids": "attnlab train grids --task.rows 1 --model.rows 1 --task.columns 3 --model.columns 3",
    "sorting": "attnlab train sorting --model.positions alibi --training.epochs 5",
}

ABOUT = """{what}

Besides the options below, --preset NAME starts from another preset ('attnlab train --help' lists them); in
the place of TASK, --spec FILE starts from a spec file, and --resume RUN goes on with a stopped run. A
key may go by its last word, as --epochs for --training.epochs.

Example: {example}"""

USAGE = """usage: attnlab train TASK [--preset NAME] [--out PATH] [--json] [--model.KEY VALUE ...]
       attnlab train FILE.py[:NAME] [...]   a task of your own
       attnlab train --spec FILE [...]      start from a spec file, such as that of a run
       attnlab train --resume RUN           go on where a run was stopped

tasks and their presets:
{TASKS}

example: {EXAMPLE}
all keys: attnlab train addition --help"""


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Go on with a run that was stopped; it keeps its spec.

    Example: attnlab train --resume runs/addition-default-s0
    """

    json: bool = False
    """Print the run's summary as JSON."""
    checkpoint: float = 10.0
    """Seconds between two saves of the training state."""
    track: tuple[Tracker, ...] = ()
    """Trackers that get the metrics besides the run folder; their files go into it too."""
    show: int = 0
    """Show this number of validation images after each epoch, as 'attnlab show' does."""
    doctor: bool = False
    """Print findings as soon as they are certain, and diagnose the run at the end."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions(ResumeOptions):
    """Train a model and keep everything about it in a run folder."""

    spec: Annotated[Spec, tyro.conf.arg(name="")]
    out: Annotated[str, tyro.conf.arg(metavar="PATH")] = ""
    """Run folder to create; by default runs/TASK-PRESET-sSEED, numbered if taken."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print_text(USAGE.replace("{TASKS}", _tasks()).replace("{EXAMPLE}", EXAMPLES["addition"]))
        return 0
    resume, rest = take_option(arguments, "--resume")
    if resume is not None:
        _alone("--resume", resume, rest)
        again = parse(ResumeOptions, rest, command="train --resume RUN", default=ResumeOptions())
        return finish(load(resume), again)
    task = arguments[0]
    about = ABOUT.format(what=TrainOptions.__doc__, example=EXAMPLES.get(task, EXAMPLES["addition"]))
    name, options = read_options(arguments, command=f"train {task}", about=about)
    check_options(options.spec.task, checkpoint=options.checkpoint, track=options.track, show=options.show)
    return finish(new_run(name, options), options)


def _tasks() -> str:
    """A line for each task that is found by name, with its presets; a task of others has at least one."""
    named = {task: find_task(task) for task in task_names()}
    own = {kind: task.presets() for kind, task in named.items() if task.__module__.startswith("attnlab.")}
    return "\n".join(f"  {kind:<10} {', '.join(own.get(kind, ['default']))}" for kind in named)


def read_options(
    arguments: list[str], *, command: str, about: str | None = None
) -> tuple[str, TrainOptions]:
    """What the words ask for, and a name for it; ``about`` heads the help text."""
    spec, name, rest = _read_start(arguments)
    options = parse(TrainOptions, rest, command=command, default=TrainOptions(spec=spec), about=about)
    return f"{name}-s{options.spec.seed}", options


def new_run(name: str, options: TrainOptions) -> Run:
    """An empty run folder, ready to be trained."""
    if options.out:
        check_unused(Path(options.out))
    from attnlab.front.training import begin

    return begin(options.spec, options.out, name)


def _read_start(arguments: list[str]) -> tuple[Spec, str, list[str]]:
    """The spec of the task and its preset, or of the spec file; a name for it; and the other words."""
    file, rest = take_option(arguments, "--spec")
    if file is not None:
        _alone("--spec", file, rest)
        return _read_spec(Path(file)), Path(file).stem, rest
    task, rest = arguments[0], arguments[1:]
    if task.startswith("-"):
        raise SpecError(f"{brief(task)} is not a task; write 'attnlab train TASK ...'")
    name, rest = take_option(rest, "--preset")
    name = "default" if name is None else name
    spec = preset(task, name)
    return spec, f"{spec.task.kind}-{name}", [_in_full(word, spec) for word in rest]


def _in_full(word: str, spec: Spec) -> str:
    """``--task.digits`` for ``--digits``: a key may go by its last word."""
    key, equals, value = word.removeprefix("--").partition("=")
    if not word.startswith("--") or key in OPTIONS:
        return word
    with suppress(SpecError):  # the parser tells of a key that is not there
        return f"--{whole_key(spec, key)}{equals}{value}"
    return word


def _alone(option: str, value: str, rest: list[str]) -> None:
    """A spec file and a resumed run know their task: nothing but flags may stand beside them."""
    if rest and not rest[0].startswith("-"):
        raise SpecError(f"{brief(rest[0])} cannot be combined with {option} {value}, which names its task")


def stopped(run: Run) -> int:
    """Say how to go on; the exit code of a training that was asked to stop."""
    say(f"go on with: attnlab train --resume {quote(str(run.path))}")
    return EXIT_STOPPED


def finish(run: Run, options: ResumeOptions) -> int:
    """Train ``run`` to its end, and say how good it became."""
    trained = run.resume(
        checkpoint=options.checkpoint, track=options.track, show=options.show, doctor=options.doctor
    )
    summary = trained.summary()
    if summary is None:
        return stopped(run)
    if options.json:
        print_json({"run": str(run.path), **summary})
    else:
        exact = percent(summary["valid"].get("exact_match", 0))
        print_text(
            f"{run.called}: {summary['parameters']:,} parameters, {summary['steps']:,} steps "
            f"in {summary['seconds']:.0f} s, validation exact {exact}"
        )
        say(f"next: attnlab evaluate {quote(run.called)}")
    return 0


def _read_spec(path: Path) -> Spec:
    try:
        data = read_json(path, MOST_SPEC)
    except FileNotFoundError as error:
        raise SpecError(f"spec file {path} does not exist") from error
    except (OSError, ValueError) as error:
        raise SpecError(f"spec file {path} cannot be read as JSON ({error})") from error
    if isinstance(data, dict) and data.get("source"):
        require_code(data.get("task"), data["source"], path.parent / CODE)
    return from_json(Spec, data)
