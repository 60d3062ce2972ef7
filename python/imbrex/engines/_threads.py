"""The engine of one process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ._engine import Chunk, Tally


class Threads:
    """Threads of this process; as many as there are processors when nothing is said. They share the traces in memory.

    Jobs are made while somebody waits for them, in the thread that waits: there Ctrl-C ends them at once.
    """

    #: The threads are those of the one chunk that all jobs are.
    chunk_jobs: int | None = None

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads if threads is not None else len(os.sched_getaffinity(0))

    def submit(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        return chunks

    def as_completed(self, tasks: Sequence[Chunk]) -> Iterator[tuple[Chunk, Tally]]:
        for chunk in tasks:
            yield chunk, chunk()

    def cancel(self, tasks: Sequence[Chunk]) -> None:
        """There is nothing left to be given up."""
