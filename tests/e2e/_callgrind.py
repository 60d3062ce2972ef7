"""Instructions of fixed inputs, counted by callgrind."""

import pathlib
import re
import subprocess
import sys

from _serving import SCRATCH

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INPUTS = {
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


def instructions(program, arguments):
    """How many instructions a program takes for an input."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={SCRATCH}/callgrind", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])
