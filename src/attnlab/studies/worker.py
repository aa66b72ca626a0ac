"""A worker process: takes jobs as lines of JSON from standard input, tells events on standard output.

    python -m attnlab.studies.worker POOL

Lines in: ``{"do": JOB}``, ``{"go_on": true}`` as the answer to an epoch that asks, ``{"stop": true}``. When
the other end is gone, whatever the reason, the worker saves its run and leaves.
"""

import gc
import json
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from io import TextIOBase
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import final

import torch

from attnlab.studies.jobs import Event, Job
from attnlab.studies.performing import perform


@final
class PipeLink:
    """The two pipes to the process that gives the jobs."""

    def __init__(self, lines: Iterable[str], out: TextIOBase) -> None:
        self._out = out
        self._stop = Flag()
        self._answers: SimpleQueue[bool] = SimpleQueue()
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        Thread(target=self._listen, args=(lines,), daemon=True).start()

    def send(self, event: Event) -> None:
        try:
            self._out.write(json.dumps(asdict(event)) + "\n")
            self._out.flush()
        except (BrokenPipeError, ValueError):
            self._stop.set()

    def stopping(self) -> bool:
        return self._stop.is_set()

    def may_go_on(self) -> bool:
        return self.stopping() or self._answers.get()

    def _listen(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                match json.loads(line):
                    case {"do": job}:
                        self.jobs.put(Job.from_json(job))
                    case {"go_on": answer}:
                        self._answers.put(bool(answer))
                    case _:
                        break
        finally:  # also after a line that was torn when the other end was killed
            self._stop.set()
            self._answers.put(True)  # whoever waits finds the flag next
            self.jobs.put(None)


def main() -> None:
    """Work until there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the events
    link = PipeLink(sys.stdin, events)
    while (job := link.jobs.get()) is not None and not link.stopping():
        perform(job, Path(sys.argv[1]), link)
    gc.freeze()  # else Python searches all of torch for garbage before it leaves, most of a second


if __name__ == "__main__":
    main()
