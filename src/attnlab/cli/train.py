"""``attnlab train``: from a preset, a spec file or flags to a trained run."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import tyro

from attnlab.analysis import percent
from attnlab.cli.output import Meter, print_json, say, stop_on_signal
from attnlab.cli.parsing import parse, take_option
from attnlab.errors import LabError, SpecError
from attnlab.images import has_images
from attnlab.presets import preset
from attnlab.registry import CODE, find_task, require_code, task_names
from attnlab.runs import RunFolder, create_run, open_run, unused_path
from attnlab.spec import Spec, Task, from_json, require
from attnlab.training.trackers import Tracker, build_tracker, load_tracker

EXIT_STOPPED = 130

EXAMPLES = {
    "addition": "attnlab train addition --preset reference --model.heads 8 --training.epochs 20",
    "pictures": "attnlab train pictures --directory FOLDER",
    "digits": "attnlab train digits --preset vit --training.epochs 5 --show 4",
    "grids": "attnlab train grids --task.rows 1 --model.rows 1 --task.columns 3 --model.columns 3",
    "sorting": "attnlab train sorting --model.positions alibi --training.epochs 5",
}

USAGE = """usage: attnlab train TASK [--preset NAME] [--out DIR] [--json] [--model.KEY VALUE ...]
       attnlab train FILE.py[:NAME] [...]   a task of your own
       attnlab train --spec FILE [...]      the same from a spec file
       attnlab train --resume RUN           go on where a run was stopped

tasks and their presets: {TASKS}

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
    """Who gets the metrics besides the run folder; their files go into it too."""
    show: int = 0
    """After each epoch show so many validation images, as 'attnlab show' does."""

    def __post_init__(self) -> None:
        require(self.checkpoint >= 0, "--checkpoint", self.checkpoint, "at least 0")
        for name in self.track:
            load_tracker(name)  # before there is a run folder


@dataclass(frozen=True, kw_only=True)
class TrainOptions(ResumeOptions):
    """Train a model and keep everything about it in a run folder."""

    spec: Annotated[Spec, tyro.conf.arg(name="")]
    out: str = ""
    """Run folder to create; by default runs/TASK-PRESET-sSEED, numbered if taken."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_show(self.spec.task, self.show)


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE.replace("{TASKS}", _tasks()).replace("{EXAMPLE}", EXAMPLES["addition"]))
        return 0
    resume, rest = take_option(arguments, "--resume")
    if resume is not None:
        _alone("--resume", resume, rest)
        again = parse(ResumeOptions, rest, command="train --resume RUN", default=ResumeOptions())
        run = open_run(resume)
        check_show(run.spec().task, again.show)
        if run.summary() is None:
            tell_data(run.spec().task)
            from attnlab.training import other_processor

            moved = other_processor(run)
            if moved:  # a run goes on where numbers round differently
                say(moved)
        return _finish(run, again)
    task = arguments[0]
    about = f"{TrainOptions.__doc__}\n\nExample: {EXAMPLES.get(task, EXAMPLES['addition'])}"
    name, options = read_options(arguments, command=f"train {task}", about=about)
    tell_data(options.spec.task)  # before there is a run folder: images may be missing
    return _finish(new_run(name, options), options)


def _tasks() -> str:
    """Tasks that are found by name, with their presets; those that outsiders offer have at least one."""
    named = {task: find_task(task) for task in task_names()}
    own = {kind: task.presets() for kind, task in named.items() if task.__module__.startswith("attnlab.")}
    return "; ".join(f"{kind}: {', '.join(own.get(kind, ['default']))}" for kind in named)


def read_options(
    arguments: list[str], *, command: str, about: str | None = None
) -> tuple[str, TrainOptions]:
    """What the words ask for, and a name for it; ``about`` heads the help text."""
    spec, name, rest = _read_start(arguments)
    options = parse(TrainOptions, rest, command=command, default=TrainOptions(spec=spec), about=about)
    return f"{name}-s{options.spec.seed}", options


def new_run(name: str, options: TrainOptions) -> RunFolder:
    path = Path(options.out) if options.out else unused_path(Path("runs"), name)
    return create_run(path, options.spec.settled())


def _read_start(arguments: list[str]) -> tuple[Spec, str, list[str]]:
    """The spec of the task and its preset, or of the spec file; a name for it; and the other words."""
    file, rest = take_option(arguments, "--spec")
    if file is not None:
        _alone("--spec", file, rest)
        return _read_spec(Path(file)), Path(file).stem, rest
    task, rest = arguments[0], arguments[1:]
    if task.startswith("-"):
        raise SpecError(f"{task!r} stands where a task should; write 'attnlab train TASK ...'")
    name, rest = take_option(rest, "--preset")
    name = "default" if name is None else name
    spec = preset(task, name)
    return spec, f"{spec.task.kind}-{name}", [_whole_key(word, spec.task) for word in rest]


def _whole_key(word: str, task: Task) -> str:
    """``--task.digits`` for ``--digits``: a field of the task needs no prefix."""
    key, equals, value = word.removeprefix("--").partition("=")
    short = word.startswith("--") and key in {field.name for field in dataclasses.fields(task)}
    return f"--task.{key}{equals}{value}" if short else word


def _alone(option: str, value: str, rest: list[str]) -> None:
    """A spec file and a resumed run know their task: nothing but flags may stand beside them."""
    if rest and not rest[0].startswith("-"):
        raise SpecError(f"{rest[0]!r} cannot stand beside {option} {value}, which knows its task")


def train_with_progress(
    run: RunFolder, *, checkpoint: float, track: Sequence[Tracker] = (), show: int = 0
) -> dict[str, Any] | None:
    """Train ``run`` with live progress; None if it was stopped before the end, with all saved."""
    trackers = [build_tracker(name, run) for name in dict.fromkeys(track)]
    with stop_on_signal() as stopping, Meter("training", 1) as meter:
        from attnlab.cli.training_progress import TrainingMeter, TrainingSamples
        from attnlab.training import train_run

        samples = [TrainingSamples(meter, show)] if show else []
        listeners = (TrainingMeter(meter), *samples, *trackers)
        summary = train_run(run, listeners=listeners, stopping=stopping, checkpoint_seconds=checkpoint)
    for tracker in trackers:
        if tracker.failure:
            say(tracker.failure)
        if tracker.look:
            say(f"tracked by {tracker.name}; {tracker.look}")
    return summary


def check_show(task: Task, show: int) -> None:
    """Refuse to show what is no image."""
    require(show >= 0, "--show", show, "at least 0")
    if show and not has_images(task):
        raise SpecError(f"--show {show} needs a task with images; the task {task.kind!r} has none")


def tell_data(task: Task) -> None:
    """Say which images are learned from, and loudly if they are only a sample."""
    if has_images(task):
        data = task.data
        say(f"images: {data.source}")
        if data.sample:
            say(
                f"WARNING: only the bundled sample of {len(data.train_labels):,} + "
                f"{len(data.test_labels):,} digits is there, so accuracies are lower; "
                "'attnlab data fetch' tells why"
            )


def stopped(run: RunFolder) -> int:
    """Say how to go on; the exit code of a training that was asked to stop."""
    say(f"stopped and saved; go on with: attnlab train --resume {quote(str(run.path))}")
    return EXIT_STOPPED


def _finish(run: RunFolder, options: ResumeOptions) -> int:
    if run.shipped:
        raise LabError(f"{run.name} is shipped and finished; train a run of your own instead")
    say(f"training {run.path}" if run.summary() is None else f"{run.path} is finished already")
    checkpoint, track, show = options.checkpoint, options.track, options.show
    summary = train_with_progress(run, checkpoint=checkpoint, track=track, show=show)
    if summary is None:
        return stopped(run)
    if options.json:
        print_json({"run": str(run.path), **summary})
    else:
        print(
            f"{run.path}: {summary['parameters']:,} parameters, {summary['steps']:,} steps "
            f"in {summary['seconds']:.0f} s, validation exact {percent(summary['valid']['exact_match'])}"
        )
        say(f"next: attnlab evaluate {quote(str(run.path))}")
    return 0


def _read_spec(path: Path) -> Spec:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SpecError(f"spec file {path} does not exist") from error
    except (OSError, ValueError) as error:
        raise SpecError(f"spec file {path} cannot be read as JSON ({error})") from error
    if isinstance(data, dict) and data.get("source"):
        require_code(data.get("task"), data["source"], path.parent / CODE)
    return from_json(Spec, data)
