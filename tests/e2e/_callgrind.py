"""Instructions of fixed inputs, counted by callgrind."""

import pathlib
import re
import subprocess
import sys

from _serving import SCRATCH

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Writes of 128 KiB all over 256 MiB, which a test makes.
LARGE_WRITES = SCRATCH / "large-writes.csv"
INPUTS = {
    "lru, pgbench": ("compare", "--trace", "workloads/pgbench.imbrex.xz", "--systems", "lru", "--limit", "6000", "--jobs", "1"),
    "lru, one-block": ("compare", "--trace", "synthetic:one-block/200", "--systems", "lru", "--jobs", "1"),
    "lru, durable, 128 KiB": ("compare", "--trace", str(LARGE_WRITES), "--systems", "lru", "--set", "cache.durable=true",
                              "--set", "translation.durable=true", "--set", "cache.capacity=320MiB", "--jobs", "1"),
    "pore, pgbench": ("compare", "--trace", "workloads/pgbench.imbrex.xz", "--systems", "pore", "--limit", "6000",
                      "--jobs", "1"),
    "lru-band, file churn": ("compare", "--trace", "workloads/file-churn.imbrex.xz", "--systems", "lru-band", "--limit",
                             "6000", "--jobs", "1"),
    "pore, durable, sysbench": ("compare", "--trace", "workloads/sysbench.imbrex.xz", "--systems", "pore", "--limit", "6000",
                                "--set", "cache.durable=true", "--set", "translation.durable=true", "--jobs", "1"),
    "st8000as0002, compile": ("compare", "--trace", "workloads/compile.imbrex.xz", "--systems", "st8000as0002", "--limit",
                              "10000", "--drive-scale", "64", "--jobs", "1"),
    "crash search, pore": ("crashtest", "--stack", "pore", "--seeds", "0..1", "--points", "20", "--jobs", "1"),
}


def make_large_writes():
    """Writes the trace of large writes, the same each time."""
    at, lines = 1, []
    for number in range(3000):
        at = at * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        offset = (at >> 33) % 2048 * (128 << 10)
        lines.append(f"{128166372000000000 + number * 10000},large-writes,0,Write,{offset},{128 << 10},0\n")
    LARGE_WRITES.write_text("".join(lines))


def instructions(program, arguments):
    """How many instructions a program takes for an input."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={SCRATCH}/callgrind", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])
