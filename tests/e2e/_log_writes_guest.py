#!/usr/bin/env python3
"""The part of soak_log_writes.py that runs in the guest: serves a stack whose members are logged by
dm-log-writes and marks both logs after each flush."""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _log_writes_plan as plan  # noqa: E402
from _nbd import Client  # noqa: E402


def dmsetup(*words):
    subprocess.run(["dmsetup", *words], check=True)


def main():
    imbrex, stack, members, data, flushes, seed = sys.argv[1:7]
    os.makedirs(members)
    for name, device, log in (("ssd", "/dev/ubda", "/dev/ubdb"), ("smr", "/dev/ubdc", "/dev/ubdd")):
        sectors = subprocess.check_output(["blockdev", "--getsz", device], text=True).strip()
        dmsetup("create", name, "--table", f"0 {sectors} log-writes {device} {log}")
        os.symlink(f"/dev/mapper/{name}", f"{members}/{name}")
    dmsetup("mknodes")
    subprocess.run([imbrex, "create", stack, "--data", data], check=True)
    socket = "/tmp/nbd.sock"
    server = subprocess.Popen([imbrex, "serve", stack, "--data", data, "--socket", socket])
    while not os.path.exists(socket):
        assert server.poll() is None, "the server ended"
        time.sleep(0.02)
    client = Client(socket)
    steps = plan.Steps(int(seed), client.size)
    for number in range(int(flushes)):
        for step in steps.until_flush():
            plan.do(client, step)
        client.flush()
        for name in ("ssd", "smr"):
            dmsetup("suspend", name)
        for name in ("ssd", "smr"):
            dmsetup("message", name, "0", "mark", f"flush-{number}")
        for name in ("ssd", "smr"):
            dmsetup("resume", name)
    print(f"size {client.size}")
    # The end must not be in order: what is tested is what was on the medium at each mark.
    server.kill()
    server.wait()
    for name in ("ssd", "smr"):
        dmsetup("remove", name)


main()
