"""What engines have in common."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

from .._commands import _document
from .._errors import Error

Task = TypeVar("Task")


@dataclass(frozen=True)
class Tally:
    """What came of jobs."""

    #: Jobs that were made, those that failed among them.
    made: int = 0
    #: Those of them that failed: their results say why.
    failed: int = 0
    #: Jobs whose results were there already.
    before: int = 0
    #: Jobs that other processes have made meanwhile.
    by_others: int = 0
    #: Jobs that other processes are making.
    elsewhere: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, of.name) + getattr(other, of.name) for of in fields(self)))


@dataclass(frozen=True)
class Chunk:
    """Jobs of a file, from the number `first` to the number `last`, counted from 0. A worker makes them by calling the chunk."""

    jobs: str
    out: str
    first: int
    last: int
    #: Jobs at the same time.
    threads: int = 1
    #: Whether jobs are made again that failed before.
    retry_failed: bool = False

    def __call__(self) -> Tally:
        """Makes those jobs that nobody has made and nobody is making."""
        options = {
            "out": self.out, "index": f"{self.first}-{self.last}", "jobs": self.threads, "retry_failed": self.retry_failed,
        }
        done = _document(("sweep", "run-job"), options, [self.jobs])
        return Tally(**{of.name: done[of.name] for of in fields(Tally)})

    def checkpoint(self) -> Any:
        """What submitit sends to another machine when this one is taken away: the same, since what is made is kept."""
        return importlib.import_module("submitit").helpers.DelayedSubmission(self)


class Engine(Protocol[Task]):
    """Carries chunks to workers."""

    #: Jobs in a chunk; None for all in one.
    chunk_jobs: int | None
    #: Jobs that a worker makes at the same time.
    threads: int

    def submit(self, chunks: Sequence[Chunk]) -> Sequence[Task]:
        """Sends chunks to workers, and gives something that stands for each, in their order."""

    def as_completed(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Tally]]:
        """Gives what came of each chunk as soon as it is known, in any order.

        Raises:
            Exception: A worker has failed, or was lost and the engine does not send its chunk to another one.
        """

    def cancel(self, tasks: Sequence[Task]) -> None:
        """Gives up chunks that are not made."""


def extra(module: str, name: str) -> Any:
    """A package that an engine needs.

    Raises:
        Error: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"{module} is not installed ({error}); accepted: after pip install 'imbrex[{name}]'"
        raise Error(message, value=module) from error
