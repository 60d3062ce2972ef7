"""Figures for papers, by Matplotlib (`pip install 'imbrex[plot]'`): sized for a column, with fonts that publishers take.

    from imbrex import compare, plots

    report = compare("mytrace.csv.gz", systems=["lru", "ride"], sweep={"cache.capacity": ["1%", "2%", "5%"]})
    plots.save(plots.over(report, "cache.capacity", "io_time_s"), "sizes.pdf")
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ._errors import Error, UsageError
from ._report import Report
from ._words import Path, path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Given = ParamSpec("Given")
Made = TypeVar("Made")

#: Widths in inches: one column and both of the two-column layouts of ACM and IEEE (3.33 and 3.5, 7.0 and 7.16).
WIDTHS_INCHES = {"column": 3.33, "text": 7.0}

#: Letters stay letters in PDF and in SVG; lines and text are as thick and as large as they print.
STYLE = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.5,
}

#: Told apart in black and white too.
MARKS = "osD^vPX*<>ph"

#: What axes call the columns of `results.csv` whose name says less.
LABELS = {
    "io_time_s": "I/O time, s",
    "finish_s": "finished after, s",
    "seek_time_s": "seek time, s",
    "response_mean_ms": "mean response, ms",
    "response_p99_ms": "P99 response, ms",
    "response_p99_9_ms": "P99.9 response, ms",
    "response_max_ms": "longest response, ms",
    "write_amplification_host": "band bytes per host byte",
    "bands_rewritten": "bands rewritten",
}


def _styled(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Draws in our style, and leaves that of the caller as it is."""

    @functools.wraps(make)
    def styled(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            matplotlib = importlib.import_module("matplotlib")
        except ImportError as error:
            message = f"matplotlib is not installed ({error}); accepted: after pip install 'imbrex[plot]'"
            raise Error(message, value="matplotlib") from error
        with matplotlib.rc_context(STYLE):
            return make(*args, **kwargs)

    return styled


@_styled
def over(report: Report, key: str, metric: str = "io_time_s", *, size: str = "column", log: bool = False) -> Figure:
    """A metric over a swept key, a line for each system; a system without the key is level.

    Args:
        key: The swept key, such as `cache.capacity`.
        metric: A column of `report.runs`.
        size: `column` or `text`: how wide it is.
        log: Whether the vertical axis is logarithmic.

    Raises:
        UsageError: There is no such column.
    """
    runs = _runs(report, key, metric)
    values = [it for it in runs[key].unique() if isinstance(it, str) and it]
    figure, axes = _figure(size)
    for at, (system, of) in enumerate(runs.groupby("system", sort=False)):
        by_value = of.groupby(key, sort=False)[metric].mean()
        level = by_value.iloc[0] if not set(by_value.index) & set(values) else None
        points = [by_value.get(value, level) for value in values]
        axes.plot(range(len(values)), points, marker=MARKS[at % len(MARKS)], label=system)
    axes.set_xticks(range(len(values)), values)
    axes.set_xlabel(key)
    return _finished(figure, axes, metric, log)


@_styled
def bars(report: Report, metric: str = "io_time_s", *, size: str = "column", log: bool = False) -> Figure:
    """A metric of each run, a bar each.

    Raises:
        UsageError: There is no such column.
    """
    runs = _runs(report, metric)
    figure, axes = _figure(size)
    axes.bar(range(len(runs)), runs[metric], color=[f"C{at % 10}" for at in range(len(runs))])
    axes.set_xticks(range(len(runs)), runs["run"], rotation=30, ha="right")
    axes.grid(axis="x", visible=False)
    return _finished(figure, axes, metric, log, has_legend=False)


@_styled
def latency(report: Report, *, size: str = "column") -> Figure:
    """The share of requests that take longer than a time, a line for each run; both axes are logarithmic.

    Raises:
        UsageError: The report has no times.
    """
    if report.latency is None:
        raise UsageError("latency: the report is without times; accepted: one of a comparison that is not untimed")
    figure, axes = _figure(size)
    for run, of in report.latency.to_pandas().groupby("run", sort=False):
        axes.plot(of["response_ms"], of["tail"].where(of["tail"] > 0), label=run)
    axes.set_xscale("log")
    axes.set_xlabel("response time, ms")
    return _finished(figure, axes, "share of requests that take longer", log=True)


@_styled
def save(figure: Figure, file: Path) -> None:
    """Writes a figure as the ending of the file says, such as `.pdf` and `.svg`, without white edges of its own."""
    figure.savefig(path(file))


def _runs(report: Report, *columns: str) -> Any:
    runs = report.runs.to_pandas()
    for column in columns:
        if column not in runs:
            raise UsageError(f"{column}: no column of the runs; accepted: {', '.join(runs.columns)}", value=column)
    return runs


def _figure(size: str) -> tuple[Any, Any]:
    width = WIDTHS_INCHES.get(size)
    if width is None:
        raise UsageError(f"size={size!r}: accepted: {', '.join(WIDTHS_INCHES)}", value=size)
    figures = importlib.import_module("matplotlib.figure")
    figure = figures.Figure(figsize=(width, width * 0.62), layout="constrained")
    return figure, figure.add_subplot()


def _finished(figure: Any, axes: Any, metric: str, log: bool, has_legend: bool = True) -> Figure:
    axes.set_ylabel(LABELS.get(metric, metric))
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if has_legend:
        axes.legend(frameon=False)
    finished: Figure = figure
    return finished
