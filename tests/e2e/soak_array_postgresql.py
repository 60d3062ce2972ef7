#!/usr/bin/env python3
"""PostgreSQL on ext4 on a served array of copies, in a guest kernel: during pgbench a member fails, a new file takes its
place and is filled, and pgbench sees no error. Then the server is killed with SIGKILL in each phase; after each restart all
that was committed is there, and page checksums, B-trees, the file system and the image are whole."""

# Alone: its guest takes much of the memory.

import glob
import sys

from _array import stack_file
from _guest import need_guest, prepare, run
from _serving import SCRATCH, need

PHASES = ["rebuilding", "degraded", "healthy", "scrubbing"]
TIMEOUT_S = 3 * 3600

need("nbd-client", "mkfs.ext4", "e2fsck", "setpriv")
if not glob.glob("/usr/lib/postgresql/*/bin/pg_checksums"):
    print("skipped: PostgreSQL is not installed")
    sys.exit(77)
need_guest()
share = SCRATCH / "share"
prepare(share, "_postgresql_guest.sh")
stack_file("mirror", 2).rename(share / "mirror.toml")
command = (f"SIZE=256MiB PHASES='{' '.join(PHASES)}' /share/_postgresql_guest.sh "
           f"/share/imbrex /share/data {len(PHASES)} /share/mirror.toml")
output = run(command, share, memory="3G", timeout_s=TIMEOUT_S)
print(output)
assert output.count("pgbench went on while disk-1 failed, was replaced and rebuilt") == len(PHASES)
assert output.count("checksums, amcheck and e2fsck clean") == len(PHASES)
assert "check --data is clean" in output
