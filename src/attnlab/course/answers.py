"""A student's answers: a Python file with named values and functions, executed because its user names it.

What is left as ``...`` is a blank. Whatever the student's code raises becomes feedback with the line.
"""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn, final

import torch
from torch import Tensor

from attnlab.course.feedback import NotAnsweredError, Wrong
from attnlab.errors import ECHOED, InputError, LabError, brief, shortened

MODULE = "attnlab_answers"
"""What the student's file is called while it runs."""
NO_ERROR = "no error"
SHAPES = (
    "write the shape of every intermediate result beside its line; the order of axes is the same in all "
    "exercises: examples, heads, queries, keys, width"
)
BLANK = "fill in this blank: replace the three dots by your answer"


@final
class Answers:
    """What a file defines."""

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        self.path = path
        self._found = found

    def value(self, name: str, kind: type | tuple[type, ...], called: str) -> Any:
        """A value of one of the classes ``kind``, which a student knows as ``called``."""
        given = self._given(name, called)
        if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
            hint = f"assign {called} to {name}"
            raise NotAnsweredError(
                Wrong(f"{brief(given)}, of the type {type(given).__name__}", called, hint)
            )
        return given

    def number(self, name: str, called: str) -> float:
        """A number; a tensor with one element and NumPy's numbers are one too."""
        given = self._given(name, called)
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            if not isinstance(given, str | bool):
                return float(given)
        raise NotAnsweredError(Wrong(f"{brief(given)}, not a number", called, f"assign {called} to {name}"))

    def names(self, name: str, called: str) -> list[str]:
        """Several words; a set, a tuple and a dictionary's keys do as well as a list."""
        given = self._given(name, called)
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise NotAnsweredError(
                Wrong(
                    brief(given), called, 'write a list of names in quotes, such as ["decoder.0.cross.1"]'
                )
            )
        found = list(given)
        if not all(isinstance(each, str) for each in found):
            raise NotAnsweredError(Wrong(brief(found), called, "every element must be a name in quotes"))
        if not found or found == [""]:
            raise NotAnsweredError(Wrong("an empty list", called, BLANK))
        return found

    def function(self, name: str, called: str) -> "Callable[..., Any]":
        """A function of the student's, whose errors and blanks become feedback."""
        given = self._given(name, called)
        if not callable(given):
            raise NotAnsweredError(Wrong(brief(given), called, f"define it with: def {name}(...):"))

        def ask(*inputs: Any, **named: Any) -> Any:
            with running(self.path):
                said = given(*inputs, **named)
            if said is None or said is ...:
                raise NotAnsweredError(Wrong("nothing: the function returns no value", called, BLANK))
            return said

        return ask

    def tensor_of(
        self,
        name: str,
        called: str,
        *inputs: Any,
        shape: tuple[int, ...],
        hints: Mapping[tuple[int, ...], str] = MappingProxyType({}),
    ) -> Tensor:
        """What the function ``name`` gives for ``inputs``: numbers of this ``shape``.

        ``hints`` are for other shapes that are often returned.
        """
        said = self.function(name, called)(*inputs)
        if not isinstance(said, Tensor):
            try:
                said = torch.as_tensor(said)
            except (TypeError, ValueError, RuntimeError):
                got = f"{brief(said)}, of the type {type(said).__name__}"
                raise NotAnsweredError(Wrong(got, called, "return a tensor")) from None
        if tuple(said.shape) != shape:
            given = ", ".join(str(tuple(each.shape)) for each in inputs if isinstance(each, Tensor))
            of = f" for inputs of the shape {given}" if given else ""
            raise NotAnsweredError(
                Wrong(
                    f"a tensor of the shape {tuple(said.shape)}{of}",
                    f"a tensor of the shape {shape}",
                    hints.get(tuple(said.shape), SHAPES),
                )
            )
        return said.detach()

    def element(self, name: str, given: Mapping[Any, Any], key: str, called: str) -> None:
        """Refuse a dictionary whose ``key`` is missing or blank."""
        if given.get(key) in (None, ...):
            raise NotAnsweredError(Wrong(f"no value for {key!r} in {name}", called, BLANK))

    def refuse(self, got: str, expected: str) -> NoReturn:
        """Say that something was given that nobody asked for."""
        raise NotAnsweredError(Wrong(got, expected, "take the names from the template of the lesson"))

    def _given(self, name: str, called: str) -> Any:
        if name not in self._found:
            raise NotAnsweredError(
                Wrong(
                    f"the file defines no {name}", called, "take the name from the template of the lesson"
                )
            )
        given = self._found[name]
        if given is ... or given is None:
            raise NotAnsweredError(Wrong("a blank", called, BLANK))
        return given


def run_answers(path: str, source: str) -> Answers:
    """Execute a file; what cannot be executed is refused in one sentence with its line."""
    module = ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module  # dataclasses look their module up
    try:
        with running(path):
            exec(compile(source, path, "exec"), vars(module))
    except NotAnsweredError as error:
        raise InputError(f"the answers cannot be run: {error.wrong.got}") from error
    return Answers(path, vars(module))


@contextlib.contextmanager
def running(path: str) -> Iterator[None]:
    """Code of the student's: what it prints goes to standard error, what it raises becomes feedback."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except NotAnsweredError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's program
        raise NotAnsweredError(Wrong(said_by(error, path), NO_ERROR, "run this line by itself")) from error


def said_by(error: BaseException, path: str) -> str:
    """One sentence on what the student's code raised, with its line."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}, line {error.lineno}: SyntaxError: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    text = " ".join(str(error).split())
    what = shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, ECHOED)
    where = f"{path}, line {lines[-1]}: " if lines else ""
    return where + (text if isinstance(error, LabError) else what)
