"""Simulate shingled (SMR) disks under translation layers, SSD caches, arrays and schedulers.

Every function does what the command of the same name does, with the same options, and refuses the same.
"""

from . import _imbrex
from ._commands import (
    Trace,
    bound,
    characterise,
    compare,
    load,
    movement,
    mrc,
    reproduce,
    run,
    synthesise,
    systems,
    verdict,
)
from ._errors import Error, Stopped, TraceError, UsageError
from ._imbrex import Cache
from ._policy import Policy
from ._report import Document, Page, Report, Table

#: The version, with the commit that it was built from.
__version__ = _imbrex.version()

__all__ = [
    "Cache",
    "Document",
    "Error",
    "Page",
    "Policy",
    "Report",
    "Stopped",
    "Table",
    "Trace",
    "TraceError",
    "UsageError",
    "bound",
    "characterise",
    "compare",
    "load",
    "movement",
    "mrc",
    "reproduce",
    "run",
    "synthesise",
    "systems",
    "verdict",
]
