#!/usr/bin/env python3
"""A zone-LRU buffer over a controller over a drive-managed disk is served. fio writes to it, the server is killed with SIGKILL in the middle,
started again, and fio verifies every block that it had been told is written, while zones leave the buffer. Then an end in good
order and `imbrex check`. An image over a host-aware drive is refused by the drive's translation, in words."""

import subprocess

from _kill import Killable, bounded
from _serving import IMBREX, SCRATCH, create, need

need("fio", "timeout")
STACK = SCRATCH / "zone-lru-buffer.toml"
STACK.write_text("""name = "zone-lru-buffer"
[[node]]
name = "smr"
kind = "disk"
drive = "st5000as0011"
[[node]]
name = "translation"
kind = "persistent-cache"
below = "smr"
persistent_cache = "32MiB"
[[node]]
name = "controller"
kind = "idle-control"
below = "translation"
policy = "at-ic"
at_ic = [1.0, 0.2]
[[node]]
name = "ssd"
kind = "disk"
drive = "850evo"
[[node]]
name = "buffer"
kind = "zone-lru-buffer"
below = { flash = "ssd", backing = "controller" }
capacity = "16MiB"
zone = "8MiB"
""")


def fio(server, *options):
    return ["fio", "--name=v", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite", "--size=256M",
            "--bsrange=4k-64k", "--iodepth=1", "--verify=crc32c", "--verify_fatal=1", "--fsync=64", "--randseed=1",
            *options]


data = create(STACK, "1GiB")
with Killable(STACK, data) as server:
    trigger = ["--trigger-timeout=5", f"--trigger=kill -9 {server.process.pid}"]
    status, text = bounded(fio(server, "--do_verify=0", "--verify_state_save=1", "--rate=40m", *trigger), 120)
    server.process.wait(timeout=60)
assert list(SCRATCH.glob("*verify.state")), f"fio kept no record of what it wrote (exit status {status}): {text}"

with Killable(STACK, data) as server:
    assert "was not closed in order: recovered in" in server.said(), server.said()
    status, text = bounded(fio(server, "--verify_state_load=1", "--verify_only=1"), 300)
    assert status == "0" and "READ: bw=" in text, f"exit status {status}: {text}"
    status, text = bounded(fio(server, "--do_verify=1", "--size=64M"), 300)
    assert status == "0", f"exit status {status}: {text}"
buffer = server.run_report()["nodes"]["buffer"]
assert buffer["zones_evicted"] > 2 and buffer["dirty_evictions"] > 1000, buffer
assert buffer["zones_rewritten"] == 0, buffer

done = subprocess.run([IMBREX, "check", data, "--data"], capture_output=True, text=True)
assert done.returncode == 0 and done.stdout.splitlines()[-1] == "clean", f"{done.stdout}{done.stderr}"

refused = subprocess.run([IMBREX, "create", "idler-buffer", "--size", "1GiB", "--data", SCRATCH / "zones"],
                         capture_output=True, text=True)
assert refused.returncode != 0 and "keeps the states of its zones in memory" in refused.stderr, refused.stderr
