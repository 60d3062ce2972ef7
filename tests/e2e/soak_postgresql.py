#!/usr/bin/env python3
"""PostgreSQL on ext4 on a served stack of each system, in a guest kernel: the server is killed in the middle of pgbench; after
the restart the file system's journal and PostgreSQL's recovery find everything that was committed, and page
checksums, B-trees and the file system are whole."""

# Alone: its guest takes much of the memory.

import glob
import os
import sys

from _guest import need_guest, prepare, run
from _serving import SCRATCH, need

ROUNDS = int(os.environ.get("ROUNDS", "5"))
# On 2 cores it takes some minutes; where it is much slower it still ends.
TIMEOUT_S = 3 * 3600

need("nbd-client", "mkfs.ext4", "e2fsck", "setpriv")
if not glob.glob("/usr/lib/postgresql/*/bin/pg_checksums"):
    print("skipped: PostgreSQL is not installed")
    sys.exit(77)
need_guest()
share = SCRATCH / "share"
prepare(share, "_postgresql_guest.sh")
# Bands are small, because a band is rewritten as a whole.
STACKS = {
    "pore": ("cache.capacity=48MiB", "translation.bands=fixed:2MiB"),
    "hwsr": ("cache.capacity=48MiB", "buffer.capacity=16MiB"),
    "s-block": ("cache.capacity=48MiB", "buffer.capacity=16MiB"),
}
for stack in os.environ.get("STACKS", " ".join(STACKS)).split():
    arguments = " ".join((stack, *STACKS[stack]))
    output = run(f"/share/_postgresql_guest.sh /share/imbrex /share/data-{stack} {ROUNDS} {arguments}", share,
                 memory="3G", timeout_s=TIMEOUT_S)
    print(output)
    assert output.count("checksums, amcheck and e2fsck clean") == ROUNDS, stack
