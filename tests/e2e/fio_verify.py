#!/usr/bin/env python3
"""fio writes 4 KiB to 1 MiB at random to a served stack of two systems, and under IMBREX_SOAK=1 of four, 32 requests at once with flushes between, and
verifies every block, while blocks are evicted and bands or segments rewritten underneath: the report must show that both
happened. Then a clean restart, and fio verifies again."""

import os
import shutil

from _kill import bounded
from _serving import Serving, create, need

need("fio", "timeout")
FIO = ["fio", "--name=verify", "--ioengine=nbd", "--rw=randwrite", "--bsrange=4k-1m", "--size=512M",
       "--iodepth=32", "--fsync=64", "--verify=crc32c", "--verify_fatal=1", "--randseed=1"]
TIMEOUT_S = 600


def fio(server, *options):
    status, said = bounded([*FIO, f"--uri={server.uri}", *options], TIMEOUT_S)
    assert status == "0", f"exit status {status}: {said}"


def bands_were_rewritten(run):
    assert run["bands_rewritten"] > 0, f"no band was rewritten: {run}"
    ssd, = (disk for disk in run["disks"] if disk["name"] == "ssd")
    evicted = ssd["read_bytes"]["destage"]
    assert evicted > 64 << 20, f"{evicted} bytes left the cache"


def segments_were_rewritten(run):
    nodes = run["nodes"]
    assert nodes["translation"]["segments_rewritten"] > 0, f"no segment was rewritten: {nodes}"
    assert nodes["buffer"]["evicted_blocks"] > 1024, f"too little left the buffer: {nodes}"


CACHES = ("cache.capacity=64MiB", "translation.persistent_cache=32MiB"), bands_were_rewritten
BUFFERS = ("cache.capacity=16MiB", "buffer.capacity=16MiB"), segments_were_rewritten
STACKS = {"pore": CACHES, "hwsr": BUFFERS}
if os.environ.get("IMBREX_SOAK") == "1":
    STACKS |= {"ride": CACHES, "s-block": BUFFERS}
for stack, (settings, check) in STACKS.items():
    data = create(stack, "2GiB", *settings)
    with Serving(stack, data) as server:
        fio(server, "--do_verify=1")

    run = server.run_report()
    written = run["write_blocks"] * 4096
    assert written >= 512 << 20, f"fio wrote {written} bytes"
    check(run)

    with Serving(stack, data) as server:
        fio(server, "--verify_only=1")
    # Gigabytes, and other tests run beside this one.
    shutil.rmtree(data)
