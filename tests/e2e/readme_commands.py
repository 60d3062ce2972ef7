#!/usr/bin/env python3
"""The commands of README.md, typed as they stand there from top to bottom: every line of every `sh` block. `imbrex` is what
its first command installs.

LEFT_OUT has the lines that a test cannot type, each with the reason. Lines of SLOW are begun and must not fail in their first
seconds; IMBREX_SOAK=1 (`make soak`) plays them to their ends."""

import os
import random
import shutil
import struct
import subprocess

import _recipes
from _recipes import FOLDER, TOOLS, image_of, starts_server
from _serving import IMBREX, need

ROOT = _recipes.DOCS.parent
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
LINES_MIN = 30

LEFT_OUT = {
    "make demo     # replays a recorded workload through 29 stacks, writes results/demo/report.html":
        "it compiles; the comparison that it makes is typed on a short trace (`--systems all`)",
    "make test     # installs the tools the tests drive (as root on Debian) and runs every test":
        "this test is a part of it",
    "sudo blktrace -d /dev/sdX -w 3600 -o mytrace                       # an hour of the disk /dev/sdX":
        "root, a disk and an hour; the files that it leaves are made here",
    "imbrex doctor /dev/sda                    # is it shingled, and what does that mean for a resilver, backups, a database?":
        "a disk of that name",
}
SLOW = {
    "imbrex reproduce pore          # paper beside measured, scaled to minutes; --scale 1 for full size",
    "imbrex reproduce --quick       # all five papers on divided loads, in minutes",
    "imbrex reproduce hwsr figure-13 --out results   # results/index.html: the figure beside the paper's",
    "imbrex run experiments/pore/fig16.toml --out results/fig16",
    "imbrex reproduce hwsr          # HWSR, the plain disk beside it; some minutes",
    "imbrex reproduce idler         # holding requests back so that a drive can clean, beside the paper's tables",
    "imbrex reproduce headmove      # split disks under schedulers, and what sorting alone is worth",
    "imbrex crashtest               # power cuts and faults on small stacks; docs/reliability.md says what was found",
    "imbrex drive bench st8000as0002 --html page.html",
}

# An event of blktrace: magic, sequence, time, sector, bytes, action, process, device, processor, error, length of what follows.
EVENT = struct.Struct("=IIQQIIIIIHH")
BLKTRACE_7 = 0x65617407
QUEUED = 1 | 1 << 20
READ, WRITE = 1 << 16, 1 << 17
REQUESTS, PROCESSORS = 1500, 2
DEVICE = 8 << 20


def lines_of_readme():
    return [line for _, lines in _recipes.blocks("../README.md", "sh") for line in lines]


def prepare():
    """The folder of the repository, with what a reader has in it: traces, and a job file and a log of fio."""
    need("make", "install", "strip")
    real_make = shutil.which("make")
    os.environ["PATH"] = f"{FOLDER}/.local/bin:{os.environ['PATH']}"
    _recipes.prepare()
    # There is no `imbrex` before it is installed.
    (TOOLS / "imbrex").unlink()
    os.environ["HOME"] = str(FOLDER)
    # The program is built already: `make` is told so, whatever the state of its sources.
    (TOOLS / "make").write_text(f'#!/bin/sh\nexec {real_make} --no-print-directory -C "{ROOT}" -o build IMBREX="{IMBREX}" "$@"\n',
                                encoding="utf-8")
    (TOOLS / "make").chmod(0o755)
    _recipes.enter(FOLDER)
    write_blktrace()
    (FOLDER / "job.fio").write_text("[writes]\nrw=randwrite\nbs=4k\nsize=16M\n", encoding="utf-8")
    subprocess.run([IMBREX, "drive", "fio", "st5000as0011", "experiments/fit/seek.fio"], cwd=FOLDER, check=True,
                   stdout=subprocess.DEVNULL)


def write_blktrace():
    """What `blktrace -o mytrace` leaves: one file for each processor."""
    draw, time_ns = random.Random(35), 0
    files = [bytearray() for _ in range(PROCESSORS)]
    for number in range(REQUESTS):
        time_ns += draw.randrange(1, 20_000_000)
        processor = draw.randrange(PROCESSORS)
        direction = draw.choice((READ, WRITE, WRITE))
        files[processor] += EVENT.pack(BLKTRACE_7, number + 1, time_ns, draw.randrange(1 << 20) * 8, draw.choice((4096, 65536)),
                                       QUEUED | direction, 1, DEVICE, processor, 0, 0)
    for processor, data in enumerate(files):
        (FOLDER / f"mytrace.blktrace.{processor}").write_bytes(data)


def play(lines):
    """Types lines, those of servers in a terminal of their own, where each goes on until the next one or until its image is
    wanted."""
    with _recipes.terminals() as (terminal, shell):
        for line in lines:
            if starts_server(line):
                terminal.type(line)
                continue
            if terminal.holds(image_of(line)):
                terminal.end()
            if line in SLOW and not IS_SOAK:
                _recipes.begin(line)
            else:
                shell.type(line)


def main():
    lines = lines_of_readme()
    unknown = (LEFT_OUT.keys() | SLOW) - set(lines)
    assert not unknown, "README.md has no such line:\n" + "\n".join(sorted(unknown))
    typed = [line for line in lines if line not in LEFT_OUT]
    assert len(typed) >= LINES_MIN, f"only {len(typed)} lines"
    if IS_SOAK:
        _recipes.LINE_TIMEOUT_S = 7200
    prepare()
    play(typed)
    for line, reason in LEFT_OUT.items():
        print(f"not typed: {line.split('#')[0].strip()} ({reason})")
    begun = 0 if IS_SOAK else len(SLOW)
    print(f"{len(typed) - begun} lines typed, {begun} begun, {len(LEFT_OUT)} left out")


main()
