#!/usr/bin/env python3
"""The whole recording chain (NBD server, FUSE, loop device, ext4, memory limit) carries a workload, with
nbdkit in the server's place, and leaves nothing mounted behind."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

RECORD = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "record.py"
SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])

for tool in ("nbdkit", "nbdfuse", "fusermount3", "mkfs.ext4"):
    if shutil.which(tool) is None:
        print(f"skipped: {tool} is not installed")
        sys.exit(77)
if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
    print("skipped: mounting needs root, /dev/fuse and loop devices")
    sys.exit(77)

log = SCRATCH / "log"
done = subprocess.run(
    [sys.executable, RECORD, "file-churn", log, "--rehearse", "--seconds", "3", "--files", "2000",
     "--device", "1GiB", "--memory", "64MiB", "--scratch", SCRATCH],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
assert done.returncode == 0, done.stdout

requests = {match[1]: int(match[2]) for match in re.finditer(r"(\w+): +(\d+) requests", done.stdout)}
assert requests["write"] > 100, done.stdout
assert requests["flush"] > 10, done.stdout
# 64 MiB of files and a cold page cache: reads must have reached the server.
assert requests["read"] > 100, done.stdout

assert str(SCRATCH) not in pathlib.Path("/proc/mounts").read_text(), "something is still mounted"
assert [path.name for path in SCRATCH.iterdir()] == ["log"], "scratch files were left behind"
loops = subprocess.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"], check=True,
                       stdout=subprocess.PIPE, text=True).stdout
assert str(SCRATCH) not in loops, f"a loop device was left behind: {loops}"
