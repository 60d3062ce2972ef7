#!/usr/bin/env python3
"""No crate that the program is built of has other features when the tests are built. Otherwise `make test` would compile it,
and what is above it, once more after `make build`."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO") or "cargo"


def crates(edges):
    """Every crate below the workspace by these kinds of dependencies, with its features."""
    command = [CARGO, "tree", "--locked", "--offline", "--workspace", "--exclude", "imbrex-python", "--edges", edges,
               "--prefix", "none", "--no-dedupe", "--format", "{p} {f}"]
    return set(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())


program, tests = crates("normal"), crates("normal,dev")
assert len(program) > 20, program
other = sorted(program - tests)
assert not other, f"built with other features for the tests: {other}"
print(f"{len(program)} crates are built in one way")
