"""An engine over Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._engine import Chunk, Tally, extra


def _call(chunk: Chunk) -> Tally:
    return chunk()


class Ray:
    """Tasks of a Ray cluster: that which `ray.init` was called for, else a new one on this machine.

    A task is a chunk of jobs, which as many threads make as the task is given processors. The chunk of a worker or a node that is lost
    goes to another one, which makes what is left of it.
    """

    def __init__(self, *, threads: int = 1, chunk_jobs: int | None = 64, retries: int = 5, **options: Any) -> None:
        """`options` are those of a Ray task, such as `resources`."""
        self.ray = extra("ray", "ray")
        self.threads = threads
        self.chunk_jobs = chunk_jobs
        self.retries = retries
        if not self.ray.is_initialized():
            self.ray.init()
        self.task = self.ray.remote(num_cpus=threads, max_retries=retries, **options)(_call)

    def submit(self, chunks: Sequence[Chunk]) -> Sequence[Any]:
        return [self.task.remote(chunk) for chunk in chunks]

    def as_completed(self, tasks: Sequence[Any]) -> Iterator[tuple[Any, Tally]]:
        errors = self.ray.exceptions
        left = list(tasks)
        may_be_lost = self.retries * len(left)
        while left:
            ended, left = self.ray.wait(left, num_returns=1)
            for task in ended:
                try:
                    tally = self.ray.get(task)
                except (errors.RayTaskError, errors.TaskCancelledError):
                    raise
                except errors.RayError:
                    # Ray does not send a task again whose node was lost in the middle of telling what it gave.
                    if may_be_lost == 0:
                        raise
                    may_be_lost -= 1
                    tally = Tally(elsewhere=1)
                yield task, tally

    def cancel(self, tasks: Sequence[Any]) -> None:
        for task in tasks:
            # One that has ended stays as it is.
            self.ray.cancel(task, force=True)
