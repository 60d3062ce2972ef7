#!/usr/bin/env python3
"""The commands of pages that have no test of their own, typed as they stand there, on short traces in the place of a reader's.
And no page is left out: PLAYED has the test of every other page with commands or lines of Python.

LEFT_OUT has the lines that a test cannot type, each with the reason. Lines of SLOW are begun and must not fail in their first
seconds; IMBREX_SOAK=1 (`make soak`) plays them to their ends, but for those of HOURS. What README.md has too is typed there."""

import gzip
import os
import random
import re
import shutil
import subprocess

import _recipes
from _recipes import DOCS, starts_server
from _serving import IMBREX, SCRATCH

ROOT = DOCS.parent
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
LINES_MIN = 40
REQUESTS = 2000
# So much of a device do the traces touch.
TOUCHED = 256 << 20

PAGES = (
    "docs/drives.md", "docs/fio.md", "docs/fit.md", "docs/reliability.md", "docs/reports.md", "docs/stacks.md", "docs/will-it-survive.md",
    "docs/workloads.md", "docs/systems/head-movement.md", "docs/systems/idler.md", "docs/systems/policies.md",
    "docs/systems/ride-bound.md", "experiments/README.md", "experiments/alike/README.md", "experiments/ride/README.md",
)
PLAYED = {
    "README.md": ("readme_commands.py", "_python_checks.py"),
    "docs/choosing-a-cache.md": ("pandas_lines.py",),
    "docs/how-to/a-disk-at-home.md": ("how_tos.py",),
    "docs/how-to/from-a-trace-to-a-paper.md": ("how_tos.py", "pandas_lines.py"),
    "docs/how-to/software-for-zones.md": ("how_tos.py",),
    "docs/operating-an-array.md": ("operating_an_array.py",),
    "docs/python.md": ("_python_checks.py", "python_package.py"),
    "docs/reports.md": ("pandas_lines.py",),
    "docs/serving.md": ("serving_recipes.py",),
    "docs/sweeps.md": ("_sweep_engines.py",),
}
LEFT_OUT = {
    "CONTRIBUTING.md": "building and testing, of which this test is a part",
    "workloads/README.md": "recording needs root and a database; record_rehearsal.py and shipped_recordings.py look at both ends of it",
    "export DISK=/dev/sdX": "a disk to overwrite; soak_fit_emulated.py has fio do it to an emulated one",
    "fio experiments/fit/": "the same",
    "imbrex compare --trace hplajw_1992_1week": "a trace that is not part of the repository",
}
SLOW = (
    "imbrex verdict workloads/compile.imbrex.xz",
    "imbrex run experiments/",
    "imbrex compare --trace workloads/pgbench.imbrex.xz",
    "imbrex bound workloads/pgbench.imbrex.xz",
)
# What comes before a page: the logs that fio makes of a real disk, of a model here; a drive file of one's own.
BEFORE = {
    "docs/fit.md": (
        "for job in seek small-writes large-writes; do imbrex drive fio st5000as0011 experiments/fit/$job.fio; done",
        "cp drives/st8000as0002.toml my-drive.toml",
    ),
}
# At full size, or all papers.
HOURS = ("imbrex reproduce",)
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def without_remark(line):
    return line.split(" #")[0].strip()


def commands(page):
    """The lines of the `sh` blocks of a page; one that ends with a backslash goes on."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [line for language, block in BLOCK.findall(text) if language == "sh"
            for line in block.replace("\\\n", " ").splitlines()]


def check_no_page_is_left_out():
    with_blocks = {str(path.relative_to(ROOT)) for folder in ("docs", "experiments", "workloads")
                   for path in (ROOT / folder).rglob("*.md") if BLOCK.search(path.read_text(encoding="utf-8"))}
    with_blocks |= {path.name for path in ROOT.glob("*.md") if BLOCK.search(path.read_text(encoding="utf-8"))}
    unknown = with_blocks - set(PAGES) - PLAYED.keys() - LEFT_OUT.keys()
    assert not unknown, f"no test plays the commands of {sorted(unknown)}"
    for page in (*PAGES, *PLAYED):
        assert page in with_blocks, f"{page} has no commands any more"
    for page, tests in PLAYED.items():
        for test in tests:
            text = (ROOT / "tests" / "e2e" / test).read_text(encoding="utf-8")
            assert page.rsplit("/", 1)[-1] in text or (test == "how_tos.py" and "how-to/" in page), f"{test} does not name {page}"


def write_traces(folder):
    """The traces of a reader: rows of the MSR Cambridge format, and a report to compare with another one."""
    draw, rows, time_100ns = random.Random(36), [], 128166372003061629
    for _ in range(REQUESTS):
        time_100ns += draw.randrange(1, 200_000)
        rows.append(f"{time_100ns},mine,{draw.randrange(4)},{draw.choice(('Read', 'Write', 'Write'))},"
                    f"{draw.randrange(TOUCHED // 4096) * 4096},{draw.choice((4096, 65536))},100\n")
    text = "".join(rows)
    for name in ("mytrace.csv", "mine.csv", "a.csv", "b.csv"):
        (folder / name).write_text(text, encoding="utf-8")
    with gzip.open(folder / "mytrace.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([IMBREX, "trace", "convert", "a.csv", "b.spc.gz", "--quiet"], cwd=folder, check=True, capture_output=True)
    subprocess.run([IMBREX, "compare", "--trace", "a.csv", "--systems", "lru", "--out", "before", "--quiet"], cwd=folder,
                   check=True, capture_output=True)
    shutil.copytree(folder / "before", folder / "after")


def play(page):
    """Plays a page; answers how many of its lines were typed, and which were not."""
    folder = SCRATCH / page.removesuffix(".md").replace("/", "-")
    folder.mkdir()
    _recipes.enter(folder)
    write_traces(folder)
    typed, left_out = 0, []
    elsewhere = {without_remark(line) for line in commands("README.md")}
    with _recipes.terminals() as (terminal, shell):
        for line in BEFORE.get(page, ()):
            shell.type(line)
        for line in commands(page):
            if without_remark(line) in elsewhere:
                continue
            if line.startswith(tuple(LEFT_OUT)):
                left_out.append(line)
                continue
            typed += 1
            if starts_server(line):
                terminal.type(line)
            elif line.startswith(HOURS) or line.startswith(SLOW) and not IS_SOAK:
                _recipes.begin(line)
            else:
                shell.type(line)
    return typed, left_out


def main():
    check_no_page_is_left_out()
    if IS_SOAK:
        _recipes.LINE_TIMEOUT_S = 7200
    _recipes.prepare()
    typed = 0
    for page in PAGES:
        count, left_out = play(page)
        typed += count
        for line in left_out:
            print(f"{page}: not typed: {without_remark(line)}")
    assert typed >= LINES_MIN, f"only {typed} lines"
    print(f"{typed} lines of {len(PAGES)} pages typed")


main()
