"""Sweeps as jobs: planned once, made by any number of workers on any number of machines, collected into one table.

    from imbrex import engines, sweep

    sweep.plan("mine.toml", "jobs.jsonl")
    sweep.run("jobs.jsonl", "results", engines.Threads())
    table = sweep.collect("jobs.jsonl", "results")["parquet"]
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from ._commands import Value, _document
from ._report import Document
from ._words import Path, path
from .engines import Chunk, Engine, Tally, Threads

#: How soon jobs are looked at again that others are making, in seconds.
LOOKED_AFTER_S = 0.5


def plan(
    file: Path, emit: Path, *, set: Mapping[str, Value] | Iterable[str] | None = None, **options: Any
) -> Document:
    """Writes the runs of an experiment into the file `emit`, as jobs.

    Args:
        file: An experiment with a sweep, such as one that `imbrex compare --print-experiment` has written.
        emit: The file of the jobs, a line each.
        set: Values of keys, such as `{"cache.capacity": "5%"}`.
        options: `scale` and `seed`.

    Returns:
        A document with the number of `jobs`.
    """
    return _document(("sweep", "plan"), {"emit": path(emit), "set": set, **options}, [path(file)])


def run(jobs: Path, out: Path, engine: Engine[Any] | None = None, *, retry_failed: bool = False) -> Tally:
    """Makes the jobs that nobody has made, the longest first. When it is stopped or killed, calling it again goes on.

    Args:
        jobs: The file that `plan` has written. Workers open it by its absolute path.
        out: The folder of the results, which all workers share.
        engine: Where they are made; threads of this process when it is None.
        retry_failed: Whether jobs are made again that failed before.

    Raises:
        Error: A file that a job reads has changed, or a result cannot be written.
        Stopped: Ctrl-C; what was made until then is kept.
    """
    engine = Threads() if engine is None else engine
    left = _chunks(FilePath(path(jobs)).absolute(), FilePath(path(out)).absolute(), engine, retry_failed)
    made = failed = before = 0
    count = sum(chunk.last - chunk.first + 1 for chunk in left)
    is_first = True
    while left:
        tasks = engine.submit(left)
        of_task = dict(zip(tasks, left, strict=True))
        left = []
        try:
            for task, tally in engine.as_completed(tasks):
                made += tally.made
                failed += tally.failed
                before += tally.before if is_first else 0
                if tally.elsewhere:
                    # Others are making some of its jobs. Should they be lost, these are made here.
                    left.append(replace(of_task[task], retry_failed=False))
        except BaseException:
            engine.cancel(tasks)
            raise
        is_first = False
        if left:
            time.sleep(LOOKED_AFTER_S)
    return Tally(made, failed, before, by_others=count - made - before)


def _chunks(jobs: FilePath, out: FilePath, engine: Engine[Any], retry_failed: bool) -> list[Chunk]:
    """The jobs of a file in chunks, those with the longest jobs first."""
    with jobs.open() as file:
        requests = [_requests(line) for line in file if line.strip()]
    size = engine.chunk_jobs or max(len(requests), 1)
    chunks = []
    for first in range(0, len(requests), size):
        of_chunk = requests[first : first + size]
        chunk = Chunk(str(jobs), str(out), first, first + len(of_chunk) - 1, engine.threads, retry_failed)
        chunks.append((max(of_chunk), chunk))
    return [chunk for _, chunk in sorted(chunks, key=lambda it: -it[0])]


def _requests(line: str) -> int:
    """How long a job is; what is no job is refused by who makes it, with its line."""
    try:
        return int(json.loads(line)["requests"])
    except (ValueError, KeyError, TypeError):
        return 0


def collect(jobs: Path, out: Path, *, partial: bool = False) -> Document:
    """Writes the results of all jobs as `results.parquet` and `results.csv` into the folder of the results.

    Args:
        partial: Leaves out the jobs that are not made, instead of raising an error that names them.

    Returns:
        A document with the paths of the tables (`parquet`, `csv`), the number of `rows`, and the jobs that `failed` and are
        `missing`.
    """
    return _document(("sweep", "collect"), {"out": path(out), "partial": partial}, [path(jobs)])
