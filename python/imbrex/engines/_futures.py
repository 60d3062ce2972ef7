"""Engines over `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
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
