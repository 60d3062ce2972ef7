#!/usr/bin/env python3
"""An end-to-end test that fails, or hangs, leaves no program behind that it has started: run.py ends them. So it does when
it is ended itself while two run at once, whose output does not mix."""

import contextlib
import io
import os
import pathlib
import signal
import subprocess
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
BINARY = os.environ["IMBREX"]
TWO_THAT_HANG = """
import pathlib, sys
sys.path.append({folder!r})
import run
run.end_on_signals()
run.run_e2e(run.Counts(), [pathlib.Path(test) for test in sys.argv[1:]], "imbrex", False, 2)
"""


def is_running(pid):
    """False of one that has ended and of which nobody has asked yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def make(name, then):
    """A test, and the file that will hold the process id of what it starts."""
    test, pid = SCRATCH / f"{name}.sh", SCRATCH / f"{name}.pid"
    test.write_text(TEST.format(pid=pid, then=then))
    test.chmod(0o755)
    return test, pid


def wait_until(what, why):
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.05)


def play(name, then, timeout_s):
    test, pid = make(name, then)
    counts = run.Counts()
    run.E2E_TIMEOUT_S = timeout_s
    began = time.monotonic()
    run.run_e2e(counts, [test], BINARY, False, 1)
    assert time.monotonic() - began < LONG_S, "it waited for what the test had started"
    wait_until(lambda: not is_running(int(pid.read_text())), f"{name}: what it has started goes on")
    return counts


def interrupt(number):
    """Two tests run at once, and run.py is told to end."""
    tests, pids = zip(*(make(f"{name}-{number}", "wait") for name in ("left", "right")))
    code = TWO_THAT_HANG.format(folder=str(pathlib.Path(run.__file__).parent))
    runner = subprocess.Popen([sys.executable, "-c", code, *tests])
    for pid in pids:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), "two tests do not run at once")
    runner.send_signal(number)
    assert runner.wait(WAIT_S) == 128 + number
    for pid in pids:
        wait_until(lambda: not is_running(int(pid.read_text())), f"signal {number}: what a test has started goes on")


def speak_at_once():
    """Two that fail, and say a line a while after the other."""
    tests = [make(name, f"for i in 1 2 3 4 5; do echo {name} $i; sleep 0.1; done; exit 1")[0] for name in ("one", "two")]
    counts, shown = run.Counts(), io.StringIO()
    with contextlib.redirect_stdout(shown):
        run.run_e2e(counts, tests, BINARY, False, 2)
    assert sorted(counts.failures) == ["one.sh", "two.sh"], counts.failures
    heads = [line.split()[0] for line in shown.getvalue().splitlines()]
    first, second = (name.removesuffix(".sh") for name in counts.failures)
    assert heads == [first] * 5 + ["FAILED"] + [second] * 5 + ["FAILED"], shown.getvalue()


assert play("fails", "exit 1", LONG_S).failures == ["fails.sh"]
assert play("passes", "exit 0", LONG_S).passed == 1
assert play("hangs", "wait", 2).failures == ["hangs.sh"]
for signal_number in (signal.SIGINT, signal.SIGTERM):
    interrupt(signal_number)
speak_at_once()
print("tests that failed, passed, hung or were interrupted left nothing behind, and two at once spoke in turn")
