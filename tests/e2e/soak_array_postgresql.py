#!/usr/bin/env python3
"""PostgreSQL on ext4 on a served array, of copies (`mirror`, a `raid1`) and with parity (`parity`, a `raid4smr`), in a guest
kernel: during pgbench a member fails, a new file takes its place and is filled, and pgbench sees no error. Then the server
is killed with SIGKILL in each phase; after each restart all that was committed is there, and page checksums, B-trees, the
file system and the image are whole. STACKS names one of the two."""

# Alone: its guest takes much of the memory.

import glob
import os
import sys

from _array import parity_stack_file, stack_file
from _guest import need_guest, prepare, run
from _serving import SCRATCH, need

PHASES = ["rebuilding", "degraded", "healthy", "scrubbing"]
TIMEOUT_S = 3 * 3600
# By name how the stack is made; then by phase the member that is replaced under load, and the one that is out or rebuilt
# when the server is killed.
STACKS = {
    "mirror": (lambda name: stack_file(name, 2), ["disk-1"] * 4, ["disk-0"] * 4),
    "parity": (parity_stack_file, ["home-1", "data", "parity", "home-0"], ["data", "parity", "home-2", "home-2"]),
}

need("nbd-client", "mkfs.ext4", "e2fsck", "setpriv")
if not glob.glob("/usr/lib/postgresql/*/bin/pg_checksums"):
    print("skipped: PostgreSQL is not installed")
    sys.exit(77)
need_guest()
share = SCRATCH / "share"
prepare(share, "_postgresql_guest.sh")
for name in os.environ.get("STACKS", " ".join(STACKS)).split():
    make_stack, firsts, seconds = STACKS[name]
    make_stack(name).rename(share / f"{name}.toml")
    command = (f"SIZE=256MiB PHASES='{' '.join(PHASES)}' FIRST='{' '.join(firsts)}' SECOND='{' '.join(seconds)}' "
               f"/share/_postgresql_guest.sh /share/imbrex /share/data-{name} {len(PHASES)} /share/{name}.toml")
    output = run(command, share, memory="3G", timeout_s=TIMEOUT_S)
    print(name)
    print(output, flush=True)
    for first in firsts:
        assert f"pgbench went on while {first} failed, was replaced and rebuilt" in output, first
    assert output.count("was replaced and rebuilt") == len(PHASES)
    assert output.count("checksums, amcheck and e2fsck clean") == len(PHASES)
    assert "check --data is clean" in output
