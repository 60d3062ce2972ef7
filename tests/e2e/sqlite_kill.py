#!/usr/bin/env python3
"""SQLite on ext4 on a served stack of each system, without a kernel file system (nbdfuse, fuse2fs): transactions are
committed, the server is killed with SIGKILL, started again, and the file system and the database are whole and hold
every transaction that was committed before the last file-system flush. 2 rounds, or 8 under IMBREX_SOAK=1."""

import os
import subprocess
import time

from _kill import Killable, bounded
from _serving import SCRATCH, create, need

need("nbdfuse", "fuse2fs", "fusermount3", "mkfs.ext4", "e2fsck", "sqlite3", "timeout")
if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
    print("skipped: mounting needs root and /dev/fuse")
    raise SystemExit(77)
ROUNDS = 8 if os.environ.get("IMBREX_SOAK") == "1" else 2
TIMEOUT_S = 120
ROWS = 200
EXPORTED, MOUNTED = SCRATCH / "fuse" / "d.raw", SCRATCH / "mnt"
DATABASE = MOUNTED / "a.db"


class Exported:
    """The export as a file."""

    def __init__(self, server):
        EXPORTED.parent.mkdir(exist_ok=True)
        self.process = subprocess.Popen(["nbdfuse", EXPORTED, "--unix", server.socket])
        wait_until(EXPORTED.exists, "nbdfuse shows the export")

    def end(self):
        subprocess.run(["fusermount3", "-u", EXPORTED.parent], check=False, stderr=subprocess.DEVNULL)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        """Without waiting for what is still to be written: the server is gone."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["fusermount3", "-uz", EXPORTED.parent], check=False)


def wait_until(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"not so after 30 s: {what}"
        time.sleep(0.05)


def mount():
    MOUNTED.mkdir(exist_ok=True)
    status, said = bounded(["fuse2fs", "-o", "fakeroot,rw", EXPORTED, MOUNTED], TIMEOUT_S)
    assert status == "0", said
    wait_until(lambda: os.path.ismount(MOUNTED), "fuse2fs mounts")


def unmount():
    subprocess.run(["fusermount3", "-u", MOUNTED], check=True)
    # fuse2fs writes what it has kept when it ends, which is after its mount is gone.
    wait_until(lambda: subprocess.run(["pgrep", "-f", f"fuse2fs.*{MOUNTED}"], stdout=subprocess.DEVNULL,
                                      check=False).returncode != 0, "fuse2fs ends")


def sql(text):
    status, said = bounded(["sqlite3", DATABASE, text], TIMEOUT_S)
    assert status == "0", f"{text[:60]}: {said}"
    return said.strip()


def insert(number):
    rows = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
    sql(f"PRAGMA synchronous=FULL; BEGIN; {rows} INSERT INTO t SELECT {number}, i, hex(randomblob(200)) FROM n;"
        " COMMIT;")


def check(server, rounds):
    exported = Exported(server)
    try:
        # As after a crash of the machine: the journal of ext4 is replayed before anything is looked at.
        status, said = bounded(["e2fsck", "-fy", EXPORTED], TIMEOUT_S)
        assert status in ("0", "1"), said
        status, said = bounded(["e2fsck", "-fn", EXPORTED], TIMEOUT_S)
        assert status == "0", said
        mount()
        assert sql("PRAGMA integrity_check;") == "ok"
        found = sql("SELECT r, count(*) FROM t GROUP BY r ORDER BY r;").split()
        kept = [f"{number}|{ROWS}" for number in range(1, rounds + 1)]
        assert found[:len(kept)] == kept, f"{found} does not begin with {kept}"
        unmount()
    finally:
        exported.end()


def play(stack, rounds, *settings):
    data = create(stack, "256MiB", *settings)
    with Killable(stack, data) as server:
        exported = Exported(server)
        try:
            subprocess.run(["mkfs.ext4", "-q", "-F", EXPORTED], check=True)
            mount()
            sql("CREATE TABLE t(r, i, x);")
            unmount()
        finally:
            exported.end()

    for number in range(1, rounds + 1):
        with Killable(stack, data) as server:
            exported = Exported(server)
            mount()
            insert(number)
            # All of this round is now with the server; what comes after may be cut anywhere.
            unmount()
            mount()
            writer = subprocess.Popen(
                ["timeout", "-s", "KILL", "30", "sqlite3", DATABASE,
                 f"INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) "
                 f"SELECT 1000 + {number}, i, hex(randomblob(200)) FROM n;"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            server.kill()
            writer.kill()
            writer.wait()
            subprocess.run(["fusermount3", "-uz", MOUNTED], check=False)
            exported.kill()
        with Killable(stack, data) as server:
            assert "was not closed in order: recovered in" in server.said(), server.said()
            check(server, number)
        print(f"{stack}, round {number}: e2fsck clean, integrity_check ok, {number * ROWS} rows", flush=True)


play("pore", ROUNDS, "cache.capacity=4MiB", "translation.persistent_cache=8MiB")
for stack in ("hwsr", "s-block"):
    play(stack, max(1, ROUNDS // 2), "cache.capacity=4MiB", "buffer.capacity=2MiB")
