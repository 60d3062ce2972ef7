#!/usr/bin/env python3
"""The ready-made stack `striped` is served from files. fio writes to it at random with a file system's kind of flushes, the
server is killed with SIGKILL in the middle and started again, and fio verifies. Then `imbrex check`, and the report: every
disk of the four has been written to."""

import subprocess

from _kill import Killable, bounded
from _serving import IMBREX, SCRATCH, need

need("fio", "timeout")
data = SCRATCH / "data"
subprocess.run([IMBREX, "create", "striped", "--size", "1GiB", "--data", data], check=True)


def fio(server, *options):
    uri = f"nbd+unix:///?socket={server.socket}"
    return ["fio", "--name=striped", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--size=512M",
            "--bsrange=4k-256k", "--iodepth=1", "--verify=crc32c", "--verify_fatal=1", "--fsync=64", *options]


with Killable("striped", data) as server:
    trigger = ["--trigger-timeout=3", f"--trigger=kill -9 {server.process.pid}"]
    options = ["--do_verify=0", "--verify_state_save=1", "--rate=40m", *trigger]
    said = bounded(fio(server, *options), 60, "write")
    server.process.wait(timeout=60)
states = sorted(state.name for state in SCRATCH.glob("*verify.state"))
assert len(states) == 1, f"fio kept {states}: {said}"
with Killable("striped", data) as server:
    status, text = bounded(fio(server, "--verify_state_load=1", "--verify_only=1"), 300, "verify")
    assert status == "0", f"exit status {status}: {text}"
    assert "READ: bw=" in text, f"nothing was checked: {text}"

nodes = server.run_report()["nodes"]
for disk in range(4):
    counted = nodes[f"disk-{disk}"]
    assert counted["read_blocks"] > 0, f"nothing was read from disk-{disk}: {counted}"
check = subprocess.run([IMBREX, "check", data, "--json"], capture_output=True, text=True)
assert check.returncode == 0, check.stdout + check.stderr
