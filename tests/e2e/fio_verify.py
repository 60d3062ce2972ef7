#!/usr/bin/env python3
"""fio writes 4 KiB to 1 MiB at random to a served PORE or RIDE stack, 32 requests at once with flushes between, and
verifies every block, while blocks are evicted and bands rewritten underneath: the report must show that both
happened. Then a clean restart, and fio verifies again."""

from _kill import bounded
from _serving import Serving, create, need

need("fio", "timeout")
FIO = ["fio", "--name=verify", "--ioengine=nbd", "--rw=randwrite", "--bsrange=4k-1m", "--size=512M",
       "--iodepth=32", "--fsync=64", "--verify=crc32c", "--verify_fatal=1", "--randseed=1"]
TIMEOUT_S = 600


def fio(server, *options):
    status, said = bounded([*FIO, f"--uri={server.uri}", *options], TIMEOUT_S)
    assert status == "0", f"exit status {status}: {said}"


for stack in ("pore", "ride"):
    data = create(stack, "2GiB", "cache.capacity=64MiB", "translation.persistent_cache=32MiB")
    with Serving(stack, data) as server:
        fio(server, "--do_verify=1")

    run = server.run_report()
    written = run["write_blocks"] * 4096
    assert written >= 512 << 20, f"fio wrote {written} bytes"
    assert run["bands_rewritten"] > 0, f"no band was rewritten: {run}"
    ssd, = (disk for disk in run["disks"] if disk["name"] == "ssd")
    evicted = ssd["read_bytes"]["destage"]
    assert evicted > 64 << 20, f"{evicted} bytes left the cache"

    with Serving(stack, data) as server:
        fio(server, "--verify_only=1")
