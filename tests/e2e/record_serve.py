#!/usr/bin/env python3
"""`workloads/record.py` on Imbrex itself: a file churn on ext4 on a served device becomes a recording
that knows the device and replays."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

IMBREX = os.environ["IMBREX"]
RECORD = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "record.py"
SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])

for tool in ("nbdfuse", "fusermount3", "mkfs.ext4"):
    if shutil.which(tool) is None:
        print(f"skipped: {tool} is not installed")
        sys.exit(77)
if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
    print("skipped: mounting needs root, /dev/fuse and loop devices")
    sys.exit(77)

recording = SCRATCH / "churn.imbrex"
done = subprocess.run(
    [sys.executable, RECORD, "file-churn", recording, "--seconds", "3", "--files", "2000",
     "--device", "1GiB", "--memory", "64MiB", "--scratch", SCRATCH, "--binary", IMBREX],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
assert done.returncode == 0, done.stdout

kept = sorted(path.name for path in SCRATCH.iterdir())
assert kept == ["churn.imbrex", "churn.imbrex.report.json"], f"{kept} were left behind"
served = json.loads((SCRATCH / "churn.imbrex.report.json").read_text())
[live] = served["runs"]

described = json.loads(subprocess.run([IMBREX, "trace", "info", recording, "--json"], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout)
assert described["kind"] == "recorded", described["kind"]
assert described["requests"] == live["requests"], (described["requests"], live["requests"])
assert described["write"]["blocks"] == live["write_blocks"], (described["write"], live["write_blocks"])
# 64 MiB of files and a cold page cache: reads must have reached the server.
assert described["read"]["requests"] > 100, described["read"]
assert described["write"]["requests"] > 100, described["write"]
assert described["flushes"] > 10, described["flushes"]
# The device is made of whole blocks, its size is at 12 in the header (docs/formats/recording.md).
device_bytes = int.from_bytes(recording.read_bytes()[12:20], "little")
assert device_bytes == 1 << 30, f"the recording is of a device of {device_bytes} bytes"

replayed = json.loads(subprocess.run(
    [IMBREX, "compare", "--trace", recording, "--systems", "lru", "--json"], check=True,
    stdout=subprocess.PIPE, text=True).stdout)
assert replayed["workload"]["kind"] == "recorded", replayed["workload"]
assert replayed["runs"][0]["write_blocks"] == live["write_blocks"], replayed["runs"][0]["write_blocks"]

assert str(SCRATCH) not in pathlib.Path("/proc/mounts").read_text(), "something is still mounted"
loops = subprocess.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"], check=True,
                       stdout=subprocess.PIPE, text=True).stdout
assert str(SCRATCH) not in loops, f"a loop device was left behind: {loops}"
