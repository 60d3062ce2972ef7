"""What can go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _imbrex
    from ._report import Document, Report


class Error(Exception):
    """A command has failed. The message names what was found and what would be accepted."""

    #: The file that it is about, as it was named.
    file: str | None
    #: The line of the file, from 1.
    line: int | None
    #: What was found there.
    value: str | None

    def __init__(self, message: str, file: str | None = None, line: int | None = None, value: str | None = None) -> None:
        super().__init__(message)
        self.file, self.line, self.value = file, line, value


class UsageError(Error, ValueError):
    """An option is not known, has a value that it does not take, or cannot stand beside another."""


class TraceError(Error):
    """A trace cannot be read or written."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a command before its time."""

    #: What was finished until then, of the kind that the function gives; none if nothing was.
    report: Report | Document | None

    def __init__(self, report: Report | Document | None) -> None:
        super().__init__("stopped" if report is None else "stopped; what is finished is in its `report`")
        self.report = report


def error_of(failed: _imbrex.Failed) -> Error:
    """The exception for why a command has failed."""
    kind = {"usage": UsageError, "trace": TraceError}.get(failed.kind, Error)
    return kind(failed.message, failed.file, failed.line, failed.value)
