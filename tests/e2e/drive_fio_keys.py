#!/usr/bin/env python3
"""`imbrex drive fio` runs a job file as fio does: the same keys in the JSON document, the same jobs, groups, numbers
of requests and flushes, and logs of the same names and columns."""

import json
import os
import subprocess

from _serving import IMBREX, SCRATCH, need

need("fio")
DATA = SCRATCH / "data"
JOBS = f"""
[global]
filename={DATA}
size=1m
bs=4k
ioengine=psync
[write]
rw=write
fsync=4
end_fsync=1
write_lat_log=log
write_iops_log=log
[clones]
stonewall
rw=randread
numjobs=2
group_reporting
[few]
rw=randread
number_ios=7
group_reporting
[mixed]
stonewall
rw=randrw
rwmixread=100
io_size=2m
[again]
stonewall
rw=read
loops=3
bs=16k
write_bw_log=log
log_offset=1
[every-second]
stonewall
rw=read:4k
io_size=64k
"""
DATA.write_bytes(bytes(1 << 20))
(SCRATCH / "jobs.fio").write_text(JOBS, encoding="utf-8")


def run(folder, command):
    """The document a command prints, and the logs it leaves in a folder."""
    (SCRATCH / folder).mkdir()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=SCRATCH / folder).stdout
    logs = {path.name: path.read_text().splitlines() for path in (SCRATCH / folder).glob("*.log")}
    return json.loads(output), logs


def keys(value, path=""):
    """Every path of a document. Options are the user's, the keys of percentiles depend on what was done."""
    if isinstance(value, dict):
        found = set()
        for key, inner in value.items():
            found |= {f"{path}.{key}"} | keys(inner, f"{path}.{key}")
        return found
    if isinstance(value, list):
        return set().union(*(keys(inner, f"{path}[]") for inner in value))
    return set()


real, real_logs = run("real", ["fio", "--output-format=json", SCRATCH / "jobs.fio"])
os.environ["NO_COLOR"] = "1"
model, model_logs = run(
    "model", [IMBREX, "drive", "fio", "cmr-500gb-7200", SCRATCH / "jobs.fio", "--json"])

missing = keys(real) - keys(model)
more = {key for key in keys(model) - keys(real) if not key.startswith(".imbrex")}
# A real device may be made of others, of which fio adds figures.
missing = {key for key in missing if not key.startswith(".disk_util[].aggr")}
assert not missing, f"keys that only fio has: {sorted(missing)}"
assert not more, f"keys that fio does not have: {sorted(more)}"
assert real["global options"] == model["global options"]
for theirs, ours in zip(real["jobs"], model["jobs"], strict=True):
    name = theirs["jobname"]
    assert list(theirs) == list(ours), f"{name}: {list(theirs)} {list(ours)}"
    for key in ("jobname", "groupid", "error", "job options", "latency_depth"):
        assert theirs[key] == ours[key], f"{name}: {key}: {theirs[key]} {ours[key]}"
    for way in ("read", "write", "trim"):
        for key in ("total_ios", "io_bytes"):
            assert theirs[way][key] == ours[way][key], f"{name}: {way} {key}: {theirs[way][key]} {ours[way][key]}"
    assert theirs["sync"]["total_ios"] == ours["sync"]["total_ios"], name
assert sorted(real_logs) == sorted(model_logs), f"{sorted(real_logs)} {sorted(model_logs)}"
for name, lines in real_logs.items():
    ours = model_logs[name]
    assert len(lines) == len(ours), f"{name}: {len(lines)} and {len(ours)} lines"
    for line, our in zip(lines, ours):
        # Time and value are the drive's own, direction, length and offset the job's.
        assert line.split(", ")[2:] == our.split(", ")[2:], f"{name}: {line} and {our}"
print(f"{len(keys(real))} keys, {len(real['jobs'])} jobs, {len(real_logs)} logs as fio writes them")
