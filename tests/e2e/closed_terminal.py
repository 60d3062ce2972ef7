#!/usr/bin/env python3
"""A terminal that closes ends the server that was started in it in order, although nothing can be printed any more:
the device is closed, and the report is in its file."""

import json
import os
import pty
import signal

from _serving import IMBREX, SCRATCH, create

data, report = create("lru", "16MiB"), SCRATCH / "report.json"
command = [IMBREX, "serve", "lru", "--data", str(data), "--socket", str(SCRATCH / "s"), "--report", str(report)]
pid, terminal = pty.fork()
if pid == 0:
    # Under nohup this test would hand down that a hangup is ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.execv(IMBREX, command)
said = b""
while b"imbrex: serving" not in said:
    said += os.read(terminal, 1000)
assert (data / "in-use").exists()
os.close(terminal)
_, status = os.waitpid(pid, 0)
assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status
assert not (data / "in-use").exists(), "the image was not closed"
assert json.loads(report.read_text(encoding="utf-8"))["workload"]["kind"] == "live"
print("the terminal closed, and the server ended in order")
