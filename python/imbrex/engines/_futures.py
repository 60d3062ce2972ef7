"""Engines over `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ._engine import Chunk, Tally

if TYPE_CHECKING:
    Future = concurrent.futures.Future[Tally]


def _call(chunk: Chunk) -> Tally:
    return chunk()


class Executor:
    """Any executor of `concurrent.futures`: a pool of processes, that of Dask, that of MPI. It is not shut down."""

    def __init__(self, executor: concurrent.futures.Executor, *, threads: int = 1, chunk_jobs: int | None = 64) -> None:
        self.executor = executor
        self.threads = threads
        self.chunk_jobs = chunk_jobs

    def submit(self, chunks: Sequence[Chunk]) -> Sequence[Future]:
        return [self.executor.submit(_call, chunk) for chunk in chunks]

    def as_completed(self, tasks: Sequence[Future]) -> Iterator[tuple[Future, Tally]]:
        for future in concurrent.futures.as_completed(tasks):
            yield future, future.result()

    def cancel(self, tasks: Sequence[Future]) -> None:
        for future in tasks:
            future.cancel()


class Threads(Executor):
    """Threads of this process; as many as there are processors when nothing is said. They share the traces in memory."""

    def __init__(self, threads: int | None = None) -> None:
        count = threads if threads is not None else len(os.sched_getaffinity(0))
        # The threads are those of the one chunk that all jobs are.
        one = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="imbrex-sweep")
        super().__init__(one, threads=count, chunk_jobs=None)
