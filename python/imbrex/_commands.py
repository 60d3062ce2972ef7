"""The commands as functions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from . import _imbrex
from ._errors import Stopped, error_of
from ._policy import MakePolicy, named
from ._report import Document, Report, Table
from ._words import Path, path, words

#: A value of a key of a stack.
Value = str | int | float | bool

Found = TypeVar("Found", Report, Document, Report | Document)


def _answer(
    command: tuple[str, ...],
    options: Mapping[str, Any],
    positional: Iterable[str] = (),
    policies: Mapping[str, MakePolicy] | None = None,
    wants_requests: bool = False,
) -> _imbrex.Answer:
    """Has a command answer.

    Raises:
        Error: It has failed.
    """
    known = {name for name, _ in _imbrex.options(list(command)) or []}
    as_document = [f"--{name}" for name in ("json", "quiet") if name in known]
    typed = [*command, *as_document, *words(command, options), "--", *positional]
    answer = _imbrex.answer(typed, named(policies), wants_requests)
    if answer.failure is not None:
        raise error_of(answer.failure) from answer.failure.cause
    return answer


def _found(answer: _imbrex.Answer, of: Callable[[str], Found]) -> Found:
    """What a command has found.

    Raises:
        Stopped: Ctrl-C ended it. What it has to say is in the notes of the exception.
    """
    found = of(answer.text) if answer.text else None
    if answer.is_stopped or found is None:
        stopped = Stopped(found)
        for remark in answer.remarks:
            stopped.add_note(remark)
        raise stopped
    for remark in answer.remarks:
        warnings.warn(remark, stacklevel=4)
    return found


def _document(command: tuple[str, ...], options: Mapping[str, Any], positional: Iterable[str] = ()) -> Document:
    return _found(_answer(command, options, positional), Document)


def compare(
    trace: Path,
    *,
    systems: str | Iterable[str] | None = None,
    set: Mapping[str, Value] | Iterable[str] | None = None,
    sweep: Mapping[str, Iterable[Value]] | Iterable[str] | None = None,
    policies: Mapping[str, MakePolicy] | None = None,
    log_requests: Path | bool = False,
    **options: Any,
) -> Report:
    """Replays one workload through several stacks.

    Args:
        trace: A file in any known format and compression, or `synthetic:RECIPE[/SCALE]`.
        systems: Stacks by name or TOML file; a name may end with `*`.
        set: Values of keys, such as `{"cache.capacity": "5%"}`, or `{"lru:cache.capacity": "5%"}` in one stack.
        sweep: Values of keys to run each stack with, such as `{"cache.capacity": ["1%", "5%"]}`.
        policies: Policies in Python, to be tried: with `{"mine": Mine}` a cache may have `policy = "python:mine"`.
        log_requests: True for a row for each request, in `Report.requests`; a path for a file of CSV with them.
        options: All other options of `imbrex compare`, such as `queue_depth=4` or `open_loop=True`.

    Raises:
        UsageError: An option is wrong.
        TraceError: The trace is.
        Error: A policy in Python has failed; what it has raised is the cause.
        Stopped: Ctrl-C; it has the report of the runs that were finished.
    """
    log = None if isinstance(log_requests, bool) else path(log_requests)
    given = {"trace": path(trace), "systems": systems, "set": set, "sweep": sweep, "log_requests": log, **options}
    answer = _answer(("compare",), given, policies=policies, wants_requests=log_requests is True)
    report = _found(answer, Report)
    report.requests = None if answer.requests is None else Table(answer.requests)
    return report


def run(
    file: Path,
    *,
    set: Mapping[str, Value] | Iterable[str] | None = None,
    policies: Mapping[str, MakePolicy] | None = None,
    **options: Any,
) -> Report | Document:
    """Runs an experiment file, sweeps included. Files are written where `out` names a folder, and nowhere else. Its stacks may
    have `policies` in Python, as those of `compare`.

    Returns:
        The report of an experiment with one workload; else a document with the reports of all.
    """
    def of(text: str) -> Report | Document:
        document = Document(text)
        return Report(text) if "runs" in document else document

    return _found(_answer(("run",), {"set": set, **options}, [path(file)], policies), of)


def reproduce(paper: str | None = None, figure: str | None = None, **options: Any) -> Document:
    """Runs the experiments of published figures; gives what papers state beside what was measured, under `rows`."""
    positional = [it for it in (paper, figure) if it is not None]
    return _document(("reproduce",), options, positional)


def verdict(trace: Path, **options: Any) -> Document:
    """Says whether a workload survives on shingled drives, and which cache turns it."""
    return _document(("verdict",), options, [path(trace)])


def bound(trace: Path, **options: Any) -> Document:
    """Says how many band rewrites and read misses no policy of a cache can do without on a trace."""
    return _document(("bound",), options, [path(trace)])


def characterise(trace: Path, **options: Any) -> Document:
    """Says what a trace is like."""
    return _document(("trace", "info"), options, [path(trace)])


def mrc(trace: Path, **options: Any) -> Document:
    """Says what LRU caches of any sizes hit; `table("points")` has a row a size."""
    return _document(("trace", "mrc"), options, [path(trace)])


def movement(trace: Path, **options: Any) -> Document:
    """Says how far a trace moves the heads of disk models; `table("models")` has a row a model."""
    return _document(("trace", "movement"), options, [path(trace)])


def synthesise(recipe: str, output: Path, **options: Any) -> str:
    """Writes a synthetic trace, in the format that the name of the output says; gives what was assumed."""
    answer = _answer(("trace", "synth"), options, [recipe, path(output)])
    if answer.is_stopped:
        raise Stopped(None)
    return "\n".join(answer.remarks)


def systems() -> Document:
    """The ready-made stacks under `systems`, and the drives of the library under `drives`."""
    return _document(("systems",), {})


def load(file: Path) -> Report:
    """Reads a report: a `report.json`, or the folder of `--out`.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no report.
    """
    named = path(file)
    if os.path.isdir(named):
        named = os.path.join(named, "report.json")
    with open(named, encoding="utf-8") as opened:
        report = Report(opened.read())
    try:
        report._compiled
    except ValueError as error:
        raise ValueError(f"{named}: is no report ({error}); accepted: a report.json of imbrex") from None
    return report


class Trace:
    """The records of a trace. Whoever reads Arrow reads them, in batches, as often as wanted.

    The columns: `time_ns`, `operation`, `offset_bytes`, `length_bytes`, `device`, `response_ns`, `fua`.
    """

    def __init__(self, trace: Path, *, limit: int | None = None, **options: Any) -> None:
        """Takes the options of `imbrex trace info` that say how a trace is read, such as `format` and `map`.

        Raises:
            TraceError: The trace cannot be opened.
            UsageError: An option is wrong, or does not fit the trace.
        """
        typed = words(("trace", "info"), options)
        compiled, failed = _imbrex.open_trace(path(trace), typed, limit)
        if compiled is None:
            assert failed is not None
            raise error_of(failed)
        self._compiled = compiled

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._compiled.__arrow_c_stream__(requested_schema)
