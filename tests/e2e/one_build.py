#!/usr/bin/env python3
"""No crate that the program is built of has other features when the tests are built, or the Python package. Otherwise `make test`
would compile it, and what is above it, once more after `make build`."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO") or "cargo"


def crates(edges, *packages):
    """Every crate below these packages by these kinds of dependencies, with its features."""
    command = [CARGO, "tree", "--locked", "--offline", *packages, "--edges", edges, "--prefix", "none", "--no-dedupe", "--format",
               "{p} {f}"]
    return set(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")) - {""}


ALL = ("--workspace", "--exclude", "imbrex-python")
program, tests, package = crates("normal", *ALL), crates("normal,dev", *ALL), crates("normal", "--package", "imbrex-python")
assert len(program) > 20, program
for use, built in (("tests", tests), ("Python package", package)):
    other = sorted(program - built)
    assert not other, f"built with other features for the {use}: {other}"
print(f"{len(program)} crates are built in one way")
