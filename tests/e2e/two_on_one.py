#!/usr/bin/env python3
"""Two caches over two translations share one shingled disk and one SSD, each pair on slices of its own, under a span.
fio writes to both windows at once, the server is killed with SIGKILL in the middle, started again, and fio verifies
each window. Then an end in good order, `imbrex check`, and the report: what the slices of a disk have counted is
what the disk has."""

import concurrent.futures
import subprocess

from _kill import Killable, bounded
from _serving import IMBREX, SCRATCH, create, need
from _stacks import two_caches

need("fio", "timeout")
ROUNDS = 2
STACK = SCRATCH / "two-on-one.toml"
# Blocks that a start and a stop read or write of a label: two copies each, and one that is completed.
LABEL_BLOCKS_MAX = 6
WINDOWS = ("left", "right")

STACK.write_text(f'name = "two-on-one"\n{two_caches(256, "24 MiB")}')
data = SCRATCH / "data"
subprocess.run([IMBREX, "create", STACK, "--data", data], check=True)


def fio(server, name, seed, *options):
    uri = f"nbd+unix:///{name}?socket={server.socket}"
    return ["fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--size=512M",
            "--bsrange=4k-64k", "--iodepth=1", "--verify=crc32c", "--verify_fatal=1", "--fsync=64",
            f"--randseed={seed}", *options]


def in_both(job):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(job, WINDOWS))


for number in range(ROUNDS):
    for state in SCRATCH.glob("*verify.state"):
        state.unlink()
    with Killable(STACK, data) as server:

        def write(name):
            trigger = [f"--trigger-timeout={3 + number}", f"--trigger=kill -9 {server.process.pid}"]
            options = ["--do_verify=0", "--verify_state_save=1", "--rate=40m", *trigger]
            return bounded(fio(server, name, number + 1, *options), 60, name)

        said = in_both(write)
        server.process.wait(timeout=60)
    states = sorted(state.name for state in SCRATCH.glob("*verify.state"))
    assert len(states) == len(WINDOWS), f"fio kept {states}: {said}"
    with Killable(STACK, data) as server:
        assert "was not closed in order: recovered in" in server.said(), server.said()

        def verify(name):
            return bounded(fio(server, name, number + 1, "--verify_state_load=1", "--verify_only=1"), 300, name)

        for name, (status, text) in zip(WINDOWS, in_both(verify)):
            assert status == "0", f"round {number + 1}, {name}: exit status {status}: {text}"
            assert "READ: bw=" in text, f"nothing was checked: {text}"
    print(f"round {number + 1}: both windows verified", flush=True)

nodes = server.run_report()["nodes"]
for name in ("smr", "ssd"):
    for counter, total in nodes[name].items():
        parts = [nodes[f"{window}-{name}"][counter] for window in WINDOWS]
        # The label of the disk is read and written by no part.
        of_label = total - sum(parts)
        assert of_label >= 0, f"{counter} of `{name}`: {parts} are more than {total}"
        if counter.endswith("_blocks"):
            assert of_label <= LABEL_BLOCKS_MAX, f"{counter} of `{name}`: {parts} are not {total}"
    assert nodes[name]["read_blocks"] > 0, f"nothing was read from `{name}`: {nodes[name]}"
check = subprocess.run([IMBREX, "check", data, "--json"], capture_output=True, text=True)
assert check.returncode == 0, check.stdout + check.stderr
