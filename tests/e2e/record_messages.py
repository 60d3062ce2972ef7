#!/usr/bin/env python3
"""`workloads/record.py` refuses what it cannot do with one sentence that says what to do instead."""

import os
import pathlib
import subprocess
import sys

RECORD = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "record.py"
SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])


def refused(status, message, *arguments, path=None):
    environment = dict(os.environ, PATH=path) if path else None
    done = subprocess.run([sys.executable, RECORD, *map(str, arguments)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == status, f"{arguments}: status {done.returncode}: {done.stdout}"
    assert message in done.stdout, f"{arguments}: {message!r} is not in {done.stdout!r}"
    assert "Traceback" not in done.stdout, done.stdout


new = SCRATCH / "new"
refused(2, "'16': expected a size such as 16GiB or 512MiB", "pgbench", new, "--device", "16")
refused(2, "'0': expected a whole number above zero", "pgbench", new, "--seconds", "0")
refused(2, "invalid choice: 'pgbnch'", "pgbnch", new)
if os.geteuid() != 0:
    refused(1, "which only root may do", "pgbench", new)
else:
    existing = SCRATCH / "existing"
    existing.touch()
    refused(1, "exists: a recording is never overwritten", "pgbench", existing)
    refused(1, "is not a directory", "pgbench", SCRATCH / "none" / "new")
    refused(1, "--memory is at most 512MiB", "pgbench", new, "--memory", "1GiB", "--rehearse")
    refused(1, "is not there: build it with `make build`", "pgbench", new, "--binary", SCRATCH / "x")
    empty = SCRATCH / "empty"
    empty.mkdir()
    # /usr/sbin and /sbin are always searched, nbdkit is in neither.
    refused(1, "nbdkit is not installed: apt-get install nbdkit", "pgbench", new, "--rehearse",
            path=str(empty))
assert not new.exists(), "a refused recording left a file behind"
