#!/usr/bin/env python3
"""pandas reads results.csv and series.csv by the lines that the docs print, and draws what they say."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
IMBREX, TMP = os.environ["IMBREX"], pathlib.Path(os.environ["IMBREX_TMP"])
VENV = TMP / "pandas"


def python():
    """A Python that has pandas and Matplotlib: this one, or one in a folder of the test."""
    has = [sys.executable, "-c", "import pandas, matplotlib"]
    if subprocess.run(has, capture_output=True).returncode == 0:
        return sys.executable
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode == 0:
        pip = [VENV / "bin/pip", "install", "--quiet", "--retries", "1", "--timeout", "15", "pandas", "matplotlib"]
        made = subprocess.run(pip, capture_output=True, text=True)
    if made.returncode != 0:
        said = (made.stderr or made.stdout).strip().splitlines()
        print(f"skipped: pandas and Matplotlib are not here and cannot be installed: {said[-1] if said else ''}")
        sys.exit(77)
    return VENV / "bin/python"


def blocks(page, language):
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def command(page, wanted):
    """The command of a page that has a word, as it is typed there."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    [line] = [line for line in lines if wanted in line]
    return shlex.split(line)


def run(words, folder, more=()):
    assert words[0] == "imbrex", words
    done = subprocess.run([IMBREX, *words[1:], "--quiet", *more], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def draw(program, code, folder, expected, *words):
    """Runs lines of a page and what is expected of what they have made."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(TMP)}
    command = [program, "-W", "error::FutureWarning", "-c", code + expected, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{code}{expected}\n{done.stderr}"


program = python()
folder = TMP / "drawn"
folder.mkdir()
(folder / "workloads").symlink_to(ROOT / "workloads")
short = ["--limit", "3000"]

# One key, as docs/choosing-a-cache.md has it.
one = command("choosing-a-cache.md", "--sweep cache.capacity=")
at = one.index("--limit")
run(one[:at] + one[at + 2 :], folder, short)
[lines] = blocks("choosing-a-cache.md", "python")
draw(program, lines, folder, """
assert list(table.columns) == ["lru", "pore", "ride"], table
assert list(table.index) == ["32MiB", "64MiB", "128MiB", "256MiB", "512MiB", "1GiB"], table
assert (table > 0).all().all(), table
assert "<svg" in open("io-time.svg").read()
""")

# A sweep that was made as jobs, as docs/how-to/from-a-trace-to-a-paper.md has it.
page = "how-to/from-a-trace-to-a-paper.md"
tools = TMP / "bin"
tools.mkdir()
(tools / "imbrex").symlink_to(pathlib.Path(IMBREX).resolve())
[typed] = [block for block in blocks(page, "sh") if "sweep plan" in block]
subprocess.run(["bash", "-e", "-c", typed], cwd=folder, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}, check=True,
               stderr=subprocess.DEVNULL)
[lines], shown = blocks(page, "python"), blocks(page, "text")
draw(program, lines, folder, """
import sys
assert open("sizes.pdf", "rb").read(4) == b"%PDF"
shown = [line.split() for line in sys.argv[1].splitlines()]
printed = [line.split() for line in str(table.round().astype(int)).splitlines()]
assert shown == printed, (shown, printed)
""", next(text for text in shown if text.startswith("system") and "cache.capacity" in text))

# Two keys, as docs/reports.md has it, in five lines.
run(command("reports.md", "--sweep cache.mode="), folder, short)
reads, two, over_time = blocks("reports.md", "python")
assert len(two.strip().splitlines()) == 5, two
draw(program, two, folder, """
assert table.shape == (3, 4), table
assert list(table.index) == ["64MiB", "256MiB", "1GiB"], table
assert set(table.columns) == {(s, m) for s in ("pore", "ride") for m in ("read-write", "write-only")}, table
assert table.notna().all().all(), table
import json
document = json.load(open("results/report.json"))
told = {(r["parameters"]["cache.capacity"], r["system"], r["parameters"]["cache.mode"]): r["io_time_s"]["total"]
        for r in document["runs"]}
for (capacity, system, mode), total in told.items():
    assert abs(table.loc[capacity, (system, mode)] - total) < 1e-9 * total, (capacity, system, mode)
lines = axes.get_lines()
assert len(lines) == 4 and all(len(line.get_ydata()) == 3 for line in lines)
assert "<svg" in open("io-time.svg").read()
""")
draw(program, reads, folder, """
assert len(runs) == 12 and runs["run"].is_unique, runs
""")
draw(program, over_time, folder, """
assert {"requests_per_s", "write_p99_ms", "requests_under_way"} <= set(series["name"]), series["name"].unique()
assert stalls.notna().any().any() and len(stalls.columns) == 12, stalls
""")
