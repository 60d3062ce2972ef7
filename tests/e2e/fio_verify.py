#!/usr/bin/env python3
"""fio writes at random to a served PORE stack and verifies every block, while blocks are evicted and
bands rewritten underneath: the report must show that both happened."""

import subprocess

from _serving import SCRATCH, Serving, create, need

need("fio")
data = create("pore", "2GiB", "cache.capacity=64MiB", "translation.persistent_cache=32MiB")
with Serving("pore", data) as server:
    subprocess.run(
        ["fio", "--name=verify", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite",
         "--bsrange=4k-64k", "--size=512M", "--iodepth=16", "--verify=crc32c", "--verify_fatal=1",
         "--do_verify=1", "--randseed=1", "--output", SCRATCH / "fio.out"], check=True, cwd=SCRATCH)

run = server.run_report()
written = run["write_blocks"] * 4096
assert written >= 512 << 20, f"fio wrote {written} bytes"
assert run["bands_rewritten"] > 0, f"no band was rewritten: {run}"
ssd, = (disk for disk in run["disks"] if disk["name"] == "ssd")
evicted = ssd["read_bytes"]["destage"]
assert evicted > 64 << 20, f"{evicted} bytes left the cache"
