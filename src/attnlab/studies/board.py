"""Live progress of many runs: the whole with an estimate, and a line for each that is under way."""

from typing import final

from rich.progress import TaskID

from attnlab.display import Bars
from attnlab.errors import printable
from attnlab.studies.jobs import ENDS, Event


@final
class Board(Bars):
    """Shows what becomes of ``total`` runs, ``done`` of them before this start."""

    def __init__(self, name: str, total: int, done: int, what: str = "runs") -> None:
        super().__init__(name, total, done)
        self._before: float = done  # what was there at the start, with parts of runs that went on
        self._done = done
        self._what = what
        self._titles: dict[str, str] = {}
        self._running: dict[str, tuple[float, str]] = {}  # share done, and what is being done
        self._lines: dict[str, TaskID] = {}

    def name(self, job: str, title: str) -> None:
        """Call a job by a title that people know."""
        self._titles[job] = printable(title, lines=False)

    def see(self, event: Event) -> None:
        if event.kind in ENDS:
            self._end(event)
        elif event.kind == "progress":
            done, total = event.data["done"], max(1, event.data["total"])
            if event.job not in self._running:
                self._before += done / total
            self._running[event.job] = (done / total, f"{event.data['phase']} {event.data['note']}".strip())
            self._show(event.job, done, total)
        self._show_whole()

    def _end(self, event: Event) -> None:
        self._running.pop(event.job, None)
        line = self._lines.pop(event.job, None)
        if self._bars is not None and line is not None:
            self._bars.remove_task(line)
        if event.kind in ("finished", "failed", "pruned"):
            self._done += 1
            reason = f": {event.data['error']}" if event.kind == "failed" else ""
            self.line(f"{self._title(event.job)} {event.kind}{reason}")

    def _show(self, job: str, done: int, total: int) -> None:
        if self._bars is None:
            return
        if job not in self._lines:
            self._lines[job] = self._bars.add_task(f"  {self._title(job)}", total=total, note="")
        self._bars.update(self._lines[job], completed=done, total=total, note=self._running[job][1])

    def _show_whole(self) -> None:
        part = float(self._done) + sum(share for share, _ in self._running.values())
        count = f"{self._done} of {self._total} {self._what}"
        if self._bars is not None:
            self._bars.update(self._whole, completed=part, total=self._total, note=count)
        else:
            parts = [f"{self._title(job)} {100 * s:.0f}% ({n})" for job, (s, n) in self._running.items()]
            running = f"; {', '.join(parts)}" if parts else ""
            left = self._left(part - self._before, self._total - part)
            self._tell(part / max(1, self._total), f"{self._name}: {count}{left}{running}")

    def _title(self, job: str) -> str:
        return self._titles.get(job, job)
