#!/usr/bin/env python3
"""An end-to-end test that fails, or hangs, leaves no program behind that it has started: run.py ends them."""

import os
import pathlib
import sys
import time

SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])
sys.path.append(str(pathlib.Path(__file__).parent.parent))
import run  # noqa: E402, which lies beside this folder

# What it starts says where it is, and would hold the output open for minutes.
TEST = """#!/bin/sh
sleep 300 &
echo $! > {pid}
{then}
"""
WAIT_S = 10
LONG_S = 100


def is_running(pid):
    """False of one that has ended and of which nobody has asked yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def play(name, then, timeout_s):
    test, pid = SCRATCH / f"{name}.sh", SCRATCH / f"{name}.pid"
    test.write_text(TEST.format(pid=pid, then=then))
    test.chmod(0o755)
    counts = run.Counts()
    run.E2E_TIMEOUT_S = timeout_s
    began = time.monotonic()
    run.run_e2e(counts, test, os.environ["IMBREX"], False)
    assert time.monotonic() - began < LONG_S, "it waited for what the test had started"
    deadline = time.monotonic() + WAIT_S
    while is_running(int(pid.read_text())):
        assert time.monotonic() < deadline, f"{name}: what it has started goes on"
        time.sleep(0.05)
    return counts


assert play("fails", "exit 1", LONG_S).failures == ["fails.sh"]
assert play("passes", "exit 0", LONG_S).passed == 1
assert play("hangs", "wait", 2).failures == ["hangs.sh"]
print("a test that failed, one that passed and one that hung left nothing behind")
