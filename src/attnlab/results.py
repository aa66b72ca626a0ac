"""Results: what analyses return. Each is a frozen dataclass; one codec makes JSON of it and back.

    @dataclass(frozen=True, kw_only=True)
    class Evaluation(Result):
        shown_by = "attnlab.tables.evaluate"

        split: Split
        examples: int
        exact_match: float
        exact_match_interval: Interval
        by_stratum: list[Stratum]

Its fields are the keys of ``--json``, in their order. A field that came later has a default; one that is
written only when there is something to say is ``later(None)``.

A result shows itself: as tables and sentences, as HTML in a notebook, as a tidy table of pandas, as
figures. ``shown_by`` names the module with its ``tables(result)`` and, where there are any,
``figures(result)``, which is imported when somebody looks; without one, a result is a table of its plain
fields. ``save(result, folder)`` in that module takes the place of the usual files.
"""

import html
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.specs.codec import from_json, to_json
from attnlab.specs.task import Task

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

R = TypeVar("R", bound="Result")

Interval = tuple[float, float]
"""The ends of a 95% interval."""

Row = dict[str, Any]
"""One observation: plain values by the names of their columns."""


@final
@dataclass(frozen=True)
class Table:
    """Cells as people read them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        escaped = [[" ".join(cell.replace("|", "\\|").split()) for cell in cells] for cells in lines]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)

    def to_html(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell.strip())}</td>' for cell in row)}</tr>"
            for row in self.rows
        )
        title = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Part = Table | str
"""Of what people read: a table or a sentence."""


@final
@dataclass(frozen=True)
class Drawing:
    """A figure that has not been drawn yet: its numbers, and what draws them."""

    data: Any
    draw: "Callable[[Any], Figure]"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The base of all results."""

    shown_by: ClassVar[str] = ""
    """The module that shows it."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = to_json(self)
        return plain

    @classmethod
    def from_json(cls: type[R], data: Any) -> R:
        """Read what ``to_json`` gave; keys that this class does not have are left out."""
        return from_json(cls, data, cls.__name__, extra=True)

    def records(self) -> list[Row]:
        """The numbers as tidy rows, one observation each: by default one of all plain fields."""
        return [plain_fields(self)]

    def frame(self) -> "pandas.DataFrame":
        """``records`` as a DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise LabError(
                "frame() needs pandas; install it with: pip install 'attnlab[notebook]'"
            ) from error
        return pandas.DataFrame(self.records())

    def tables(self) -> list[Part]:
        """Tables and sentences for people."""
        if self.shown_by:
            return list(self._shown.tables(self))
        return [records_table(type(self).__name__, self.records())]

    def figures(self) -> Mapping[str, Drawing]:
        """Its figures by name, the main one first; none where there is nothing to draw."""
        return self._shown.figures(self) if hasattr(self._shown, "figures") else {}

    @property
    def _shown(self) -> Any:
        return importlib.import_module(self.shown_by) if self.shown_by else None

    def plot(self, name: str = "") -> "Figure":
        """The main figure, or the one with this name."""
        known = self.figures()
        if not known:
            raise LabError(f"{type(self).__name__} has no figure; frame() and to_json() have its numbers")
        if name and name not in known:
            raise InputError(f"there is no figure {brief(name)}{nearest(name, known)}")
        chosen = known[name or next(iter(known))]
        return chosen.draw(chosen.data)

    def save(self, folder: str | Path) -> list[Path]:
        """Write all numbers as JSON, and each figure as SVG and PNG with its own numbers; the files."""
        from attnlab.storage import make_folder, write_json

        if hasattr(self._shown, "save"):
            files: list[Path] = self._shown.save(self, Path(folder))
            return files
        path = Path(folder) / f"{_file_name(type(self).__name__)}.json"
        make_folder(path.parent)
        write_json(path, self.to_json())
        return [path, *self.save_figures(folder)]

    def save_figures(self, folder: str | Path, *, name: str = "", prefix: str = "") -> list[Path]:
        """Only the figures; ``name`` takes the place of the main one's, also where others begin with it.

        All files begin with ``prefix``.
        """
        style, known = importlib.import_module("attnlab.figures.style"), self.figures()
        main, files = next(iter(known), ""), list[Path]()
        for own, each in known.items():
            file = prefix + (name + own.removeprefix(main) if name and own.startswith(main) else own)
            files += style.write_figure(Path(folder), file, each.data, each.draw(each.data))
        return files

    def _repr_html_(self) -> str:
        return parts_html(self.tables())


def parts_html(parts: Iterable[Part]) -> str:
    """Tables and sentences as HTML."""
    return "".join(
        part.to_html() if isinstance(part, Table) else f"<p>{html.escape(part)}</p>" for part in parts
    )


def records_table(title: str, rows: list[Row]) -> Table:
    """Rows that all have the columns of the first."""
    cells = [
        tuple(f"{each:.4g}" if isinstance(each, float) else str(each) for each in row.values())
        for row in rows
    ]
    return Table(title, tuple(rows[0]) if rows else (), tuple(cells))


def plain_fields(value: Any) -> Row:
    """The numbers and words of a dataclass; an interval becomes two."""
    row: Row = {}
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, int | float | str) or found is None:
            row[each.name] = found
        elif isinstance(found, Estimate):
            row |= estimate_columns(each.name, found)
        elif isinstance(found, tuple) and len(found) == 2 and all(isinstance(end, float) for end in found):
            row |= interval_columns(each.name.removesuffix("_interval"), found)
    return row


def interval_columns(name: str, interval: Interval | None) -> Row:
    low, high = (None, None) if interval is None else interval
    return {f"{name}_low": low, f"{name}_high": high}


def estimate_columns(name: str, estimate: "Estimate") -> Row:
    return {name: estimate.value, **interval_columns(name, estimate.interval)}


def _file_name(name: str) -> str:
    """``ablation-result`` for ``AblationResult``."""
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name).lstrip("-")


def own_class(task: Task, kind: type[R]) -> type[R]:
    """The subclass of ``kind`` that ``task`` has of its own, or ``kind``."""
    return next((each for each in task.results() if issubclass(each, kind)), kind)


@dataclass(frozen=True)
class Estimate:
    """A mean over examples with its interval; None where a single example has none."""

    value: float
    interval: Interval | None

    @property
    def ends(self) -> Interval:
        """Its interval; the value twice where there is none."""
        return self.interval or (self.value, self.value)

    def surely_above(self, limit: float) -> bool:
        """Whether the whole interval lies above ``limit``."""
        return self.interval is not None and self.interval[0] > limit

    def surely_below(self, limit: float) -> bool:
        """Whether the whole interval lies below ``limit``."""
        return self.interval is not None and self.interval[1] < limit
