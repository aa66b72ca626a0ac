"""``attnlab COMMAND ...``: finds the command, runs it, and turns a user error into one sentence."""

import codecs
import contextlib
import gc
import importlib
import io
import os
import sys
import warnings
from importlib.metadata import version
from typing import Any

from attnlab.errors import ECHOED, LabError, brief, nearest, printable, shortened

COMMANDS = {
    "demo": "train an adder, prove it on a million sums, write a page about it",
    "train": "train a model from a preset, a spec file or flags; resume a stopped run",
    "evaluate": "measure a run on data it was not trained on",
    "calibrate": "fit the temperature of a run, so that its probabilities mean something",
    "lengths": "measure a run at lengths that it has not learned from",
    "verify": "decode every pair of operands and count",
    "heads": "measure where every head looks",
    "patterns": "draw the attention patterns of an example, or of one head",
    "maps": "draw where attention goes on an image",
    "project": "draw what a run makes of many examples as points in a plane",
    "timelapse": "show how a run moved in training, from snapshots that it kept",
    "positions": "draw positional encodings, and mark positions beyond those of training",
    "ablate": "take heads out, alone and together, and measure what is lost",
    "prune": "choose heads that can go together, and really remove them",
    "patch": "find what carries a difference, by putting values of one example into another",
    "explore": "touch a model in the browser: its heads while it answers, and what happens without them",
    "doctor": "say why a run does not learn: what its log and probes of its model show",
    "explain": "say which patches or tokens an answer is attributed to, and which methods to believe",
    "show": "show digits in the terminal, with what a run reads in them",
    "predict": "ask a run for answers",
    "ensemble": "let several runs answer together",
    "handout": "write one HTML file in which the model itself runs, to hand out",
    "export": "write a model as an ONNX file, checked against torch",
    "metrics": "print how a run trained, epoch by epoch",
    "report": "write one self-contained page about a run or a study",
    "compare": "put two runs side by side, with a paired test on the same examples",
    "runs": "list runs",
    "data": "fetch MNIST, or see what is there",
    "check": "check the answers to a lesson of the course",
    "gradcheck": "compare gradients written by hand with autograd and with central differences",
    "study": "train variants over seeds and compare them with intervals",
    "sweep": "search over specs as a sweep file says",
}

PLAIN = "attnlab-plain"
"""What streams do about signs that a terminal's encoding lacks, as they know strict or replace."""
_LETTERS = {"✓": "r", "✗": "w"}  # right, wrong

EXIT_BAD_INPUT = 2
EXIT_UNEXPECTED = 70
EXIT_INTERRUPTED = 130

STDERR = 2

_NO_MEMORY = ("can't allocate memory", "not enough memory")  # what torch says instead of a MemoryError


def main() -> None:
    """Entry point of the ``attnlab`` command."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)
    code = run(sys.argv[1:])
    gc.freeze()  # else Python searches all of torch for garbage before it leaves, most of a second
    sys.exit(code)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Letters for signs that cannot be written where these must differ, else ?; and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_LETTERS.get(sign, "?") for sign in lost), error.end


codecs.register_error(PLAIN, _plain)


def _open_closed() -> None:
    """Streams that were closed (``>&-``) lead nowhere: else the next file that is opened takes their place,
    and what is printed goes there.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return 0 if arguments else EXIT_BAD_INPUT
    if arguments == ["--version"]:
        print(f"attnlab {version('attnlab')}")
        return 0
    name, *rest = arguments
    try:
        if name not in COMMANDS:
            raise LabError(
                f"unknown command {brief(name)}{nearest(name, COMMANDS, command='attnlab --help')}"
            )
        import logging  # 5 ms, which --help and --version do without

        # They would tell at length of a home that cannot be written, of fonts, or of a picture's odd parts,
        # and go on all the same.
        for library in ("matplotlib", "PIL"):
            logging.getLogger(library).setLevel(logging.ERROR)
        warnings.showwarning = _tell
        rest = _code_options(rest)
        code = _call(name, rest)
        sys.stdout.flush()
        return code
    except LabError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("attnlab: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; keep Python from complaining at exit.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        reason = (error.strerror or str(error)).lower()
        return _complain(f"{error.filename or 'standard output'}: {reason}")
    except MemoryError:
        return _complain("there is not enough memory for this; ask for less at once")
    except Exception as error:
        if any(words in str(error) for words in _NO_MEMORY):
            return _complain("there is not enough memory for this; ask for less at once")
        from attnlab.cli.unexpected import describe

        return _complain(describe(error, [name, *rest]), EXIT_UNEXPECTED)


def _complain(sentence: str, code: int = EXIT_BAD_INPUT) -> int:
    """The one sentence with which a command ends."""
    with contextlib.suppress(OSError):  # nobody is there to read it
        print(f"attnlab: {printable(sentence)}", file=sys.stderr)
    return code


def _call(name: str, words: list[str]) -> int:
    """Run the module of a command: its ``main`` where it reads its words itself, else its ``command``."""
    module = importlib.import_module(f"attnlab.cli.{name}")
    if "main" in vars(module):
        return module.main(words) or 0
    from attnlab.cli.parsing import parse

    return parse(module.command, words, command=name) or 0


def _tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """What code warns of as one line: where in it that came from helps nobody who types commands."""
    own = category.__module__.startswith("attnlab")
    text = (
        str(message) if own else f"{category.__name__}: {shortened(' '.join(str(message).split()), ECHOED)}"
    )
    print(f"attnlab: {printable(text)}", file=sys.stderr)


def _code_options(words: list[str]) -> list[str]:
    """Follow ``--trust`` and ``--tasks FILE.py``, which every command takes; the other words."""
    if not any(word in ("--trust", "--tasks") or word.startswith("--tasks=") for word in words):
        return words
    from attnlab.cli.parsing import take_option
    from attnlab.registry import tasks_in, trust_all

    if "--trust" in words:
        words = [word for word in words if word != "--trust"]
        trust_all()
    file, words = take_option(words, "--tasks")
    if file is not None:
        tasks_in(file.partition(":")[0])
    return words


def _drop_output() -> None:
    """What is still buffered has nowhere to go."""
    with contextlib.suppress(io.UnsupportedOperation):  # no file stands behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return f"""attnlab: a laboratory for small transformers

usage: attnlab COMMAND ...     (attnlab COMMAND --help shows its options)

{lines}

example: attnlab predict zoo:adder 374+814"""
