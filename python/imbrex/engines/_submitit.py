"""An engine over submitit, for Slurm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

from .._errors import Error
from .._words import Path
from ._engine import Chunk, Tally, extra


class Submitit:
    """Jobs of Slurm, all chunks as one array. A chunk that is preempted is queued again, and makes what is left of it."""

    def __init__(
        self,
        folder: Path,
        *,
        cluster: str | None = None,
        threads: int = 1,
        chunk_jobs: int | None = 64,
        array_parallelism: int = 256,
        **parameters: Any,
    ) -> None:
        """Keeps scripts and logs in `folder`, which all machines share.

        Args:
            cluster: "slurm", or "local" for processes of this machine; Slurm where there is one when it is None.
            array_parallelism: Chunks at the same time at most.
            parameters: Those of submitit, such as `timeout_min=60` and `slurm_partition="batch"`.
        """
        submitit = extra("submitit", "slurm")
        self.helpers = submitit.helpers
        self.failed = submitit.core.utils.UncompletedJobError
        self.threads = threads
        self.chunk_jobs = chunk_jobs
        self.executor = submitit.AutoExecutor(FilePath(folder), cluster=cluster)
        of_slurm = {"slurm_array_parallelism": array_parallelism}
        self.executor.update_parameters(cpus_per_task=threads, **of_slurm, **parameters)

    def submit(self, chunks: Sequence[Chunk]) -> Sequence[Any]:
        with self.executor.batch():
            tasks = [self.executor.submit(chunk) for chunk in chunks]
        return tasks

    def as_completed(self, tasks: Sequence[Any]) -> Iterator[tuple[Any, Tally]]:
        for task in self.helpers.as_completed(list(tasks), poll_frequency=1):
            try:
                yield task, task.result()
            except self.failed as error:
                raise Error(f"chunk {task.job_id} has failed; its log is {task.paths.stderr}") from error

    def cancel(self, tasks: Sequence[Any]) -> None:
        for task in tasks:
            if not task.done():
                task.cancel()
