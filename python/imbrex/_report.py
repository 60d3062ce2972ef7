"""What commands have found."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _imbrex
from ._words import Path, path

if TYPE_CHECKING:
    import pandas
    import polars


class Table:
    """A table that pandas, polars, DuckDB, pyarrow and others read without a copy, through `__arrow_c_stream__`."""

    def __init__(self, compiled: _imbrex.Table) -> None:
        self._compiled = compiled

    @property
    def column_names(self) -> list[str]:
        """The names of its columns, in their order."""
        return self._compiled.column_names

    def __len__(self) -> int:
        return self._compiled.num_rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow."""
        return self._compiled.__arrow_c_stream__(requested_schema)

    def to_csv(self) -> str:
        """The table as CSV with a header."""
        return self._compiled.to_csv()

    def to_polars(self) -> polars.DataFrame:
        """The table as a frame of polars, which has to be installed."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a frame of pandas, which has to be installed, and pyarrow with it."""
        import pyarrow

        return pyarrow.table(self).to_pandas()

    def __repr__(self) -> str:
        return f"<imbrex.Table of {len(self):,} rows: {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        lines = self.to_csv().splitlines()
        shown = "\n".join(lines[:11])
        more = f"\n... {len(self) - 10:,} more rows" if len(self) > 10 else ""
        return f"<pre>{html.escape(shown + more)}</pre>"


class Page:
    """A page with everything in it, as a notebook shows it."""

    def __init__(self, text: str) -> None:
        #: The HTML.
        self.text = text

    def write(self, file: Path) -> None:
        """Writes it to a file."""
        with open(path(file), "w", encoding="utf-8") as to:
            to.write(self.text)

    def _repr_html_(self) -> str:
        page = html.escape(self.text)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 45em; border: 0"></iframe>'


class Document(dict[str, Any]):
    """The JSON document of a command, as a dictionary."""

    #: The document as the command prints it.
    json: str

    def __init__(self, text: str) -> None:
        super().__init__(json.loads(text))
        self.json = text

    def table(self, key: str) -> Table:
        """The list under a key as a table: a row for each entry, a column for each of their keys.

        Raises:
            KeyError: There is no such key.
            TypeError: There is something else under it.
        """
        found = self[key]
        if not isinstance(found, list) or not all(isinstance(it, dict) for it in found):
            lists = [name for name, value in self.items() if isinstance(value, list)]
            raise TypeError(f"{key}: is no list of objects; accepted: {', '.join(lists) or 'there is none here'}")
        return _table_of(list(dict.fromkeys(name for it in found for name in it)), found)


class Report:
    """What happened when one workload was replayed through one or more systems."""

    def __init__(self, document: str) -> None:
        #: The JSON document, the same bytes as `--json` prints.
        self.json = document
        #: A row for each request of each run, in the order of their ends, as `compare(log_requests=True)` has them; else
        #: none.
        self.requests: Table | None = None
        self._read: _imbrex.CompiledReport | None = None
        self._tables: dict[str, Table] | None = None

    @property
    def _compiled(self) -> _imbrex.CompiledReport:
        # Whoever wants the document alone does not wait for it to be read.
        if self._read is None:
            self._read = _imbrex.CompiledReport(self.json)
        return self._read

    def to_dict(self) -> dict[str, Any]:
        """The document as a dictionary."""
        document: dict[str, Any] = json.loads(self.json)
        return document

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name: those that `--out` writes as CSV files."""
        if self._tables is None:
            self._tables = {name: Table(table) for name, table in self._compiled.tables()}
        return self._tables

    @property
    def runs(self) -> Table:
        """A row for each run: workload, system, swept keys, and what was measured, units in the names."""
        return self.tables["results"]

    @property
    def series(self) -> Table | None:
        """What was recorded over time, a row a value; none of runs that took no time."""
        return self.tables.get("series")

    @property
    def latency(self) -> Table | None:
        """The distribution of the response times; none of runs that took no time."""
        return self.tables.get("latency")

    @property
    def page(self) -> Page:
        """The page with all charts."""
        return Page(self._compiled.page())

    def write(self, folder: Path) -> list[str]:
        """Writes report.json, the CSV files and report.html into a folder; gives their paths."""
        return [os.fspath(it) for it in self._compiled.write(path(folder))]

    def diff(self, other: Report) -> Table:
        """Numbers of the runs that both reports have, and differ: this one, the other, and the ratio of the other to it."""
        mine, others = self._numbers(), other._numbers()
        rows = [
            {"run": run, "name": name, "this": value, "other": others[run][name], "ratio": _ratio(value, others[run][name])}
            for run, values in mine.items()
            if run in others
            for name, value in values.items()
            if name in others[run] and others[run][name] != value
        ]
        return _table_of(["run", "name", "this", "other", "ratio"], rows)

    def _numbers(self) -> dict[str, dict[str, float]]:
        """Every number of each run by its path in the document, but what the simulation itself cost."""
        return {
            _label(run): {name: value for key, of in run.items() if key != "simulation" for name, value in _leaves(key, of)}
            for run in self.to_dict()["runs"]
        }

    def __str__(self) -> str:
        return self._compiled.text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._compiled.comparison_html()


def _table_of(keys: list[str], rows: list[dict[str, Any]]) -> Table:
    return Table(_imbrex.Table.of_json(keys, json.dumps(rows)))


def _label(run: dict[str, Any]) -> str:
    keys = " ".join(f"{key}={value}" for key, value in run.get("parameters", {}).items())
    return f"{run['system']} {keys}".strip()


def _ratio(value: float, other: float) -> float | None:
    return other / value if value else None


def _leaves(name: str, of: Any) -> Iterator[tuple[str, float]]:
    if isinstance(of, bool):
        return
    if isinstance(of, int | float):
        yield name, of
    elif isinstance(of, dict):
        for key, value in of.items():
            yield from _leaves(f"{name}.{key}", value)
