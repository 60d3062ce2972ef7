#!/usr/bin/env python3
"""An opinion that is not ours: dm-log-writes under both members of a PORE stack, in a guest kernel. After
each flush with no request outstanding both logs are marked; each log is then replayed to each mark, and what
a server recovers from it must be exactly what was written up to that flush. It tests that a flush leaves
nothing pending; writes that no flush covers are the business of `imbrex crashtest`."""

# Alone: its guest takes much of the memory.

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import _log_writes_plan as plan
from _guest import need_guest, prepare, run
from _nbd import Client
from _serving import IMBREX, Serving, need

FLUSHES = 200
REWRITES_MIN = 10
SEED = 3
STACK = """
name = "logged"
size = "{size}"

[[node]]
name = "smr"
kind = "disk"
drive = "st5000as0011"
backing = "{members}/smr"

[[node]]
name = "translation"
kind = "persistent-cache"
below = "smr"
bands = "fixed:512KiB"
persistent_cache = "1MiB"
entries = "unlimited"
bypass = "on"
rewrite_overhead = "0 ms"

[[node]]
name = "ssd"
kind = "disk"
drive = "pblaze4"
backing = "{members}/ssd"

[[node]]
name = "cache"
kind = "write-back-cache"
below = {{ flash = "ssd", backing = "translation" }}
capacity = "1MiB"
policy = "pore"
zone = "256KiB"
period_blocks = 128
open_zones = "bl"
"""
DEVICE = "8MiB"
MEMBER_BYTES = 3 << 30
LOG_BYTES = 1 << 30
GUEST_TIMEOUT_S = 900
SECTOR = 512
LOG_MAGIC = 0x6A736677736872
DISCARD, MARK = 4, 8


class Log:
    """A log of dm-log-writes, replayed step by step onto a file."""

    def __init__(self, log, target):
        self.log = open(log, "rb")
        self.target = open(target, "r+b")
        magic, version, self.left, sector = struct.unpack_from("<QQQI", self.log.read(SECTOR))
        assert (magic, version, sector) == (LOG_MAGIC, 1, SECTOR), "not a log of dm-log-writes"

    def replay_to(self, mark):
        """Applies every entry before the mark."""
        while self.left:
            self.left -= 1
            entry = self.log.read(SECTOR)
            sector, sectors, flags, length = struct.unpack_from("<QQQQ", entry)
            if flags & MARK:
                if entry[32:32 + length] == mark.encode():
                    self.target.flush()
                    return
                continue
            self.target.seek(sector * SECTOR)
            if flags & DISCARD:
                self.target.write(bytes(sectors * SECTOR))
            else:
                self.target.write(self.log.read(sectors * SECTOR))
        raise AssertionError(f"the log has no mark {mark}")


def main():
    need("dmsetup", "blockdev")
    need_guest()
    # In memory: each flush is recovered from a fresh copy of both members.
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="imbrex-logged-", dir="/dev/shm"))
    share = scratch / "share"
    prepare(share, "_log_writes_guest.py", "_log_writes_plan.py", "_nbd.py")
    try:
        # The same path is a link to a logged device in the guest and a plain file here.
        check(share, scratch / "members")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check(share, members):
    stack = share / "logged.toml"
    stack.write_text(STACK.format(members=members, size=DEVICE))
    disks = [share / name for name in ("ssd.img", "ssd.log", "smr.img", "smr.log")]
    for path in disks:
        with open(path, "wb") as file:
            file.truncate(LOG_BYTES if path.suffix == ".log" else MEMBER_BYTES)
    # The sleeper keeps a timer running: without one the guest has been seen to stall for ever.
    output = run(f"cd /share; (sleep 3600; echo) & timeout {GUEST_TIMEOUT_S} python3 /share/_log_writes_guest.py /share/imbrex "
                 f"/share/logged.toml {members} /share/data {FLUSHES} {SEED}", share, disks=disks,
                 timeout_s=GUEST_TIMEOUT_S + 20)
    size = int(next(line for line in output.splitlines() if line.startswith("size ")).split()[1])
    members.mkdir()
    for name in ("ssd", "smr"):
        with open(members / name, "wb") as file:
            file.truncate(MEMBER_BYTES)
        (share / f"{name}.replayed").touch()
        os.truncate(share / f"{name}.replayed", MEMBER_BYTES)
    logs = [Log(share / f"{name}.log", share / f"{name}.replayed") for name in ("ssd", "smr")]
    steps = plan.Steps(SEED, size)
    expected = bytearray(size)
    for number in range(FLUSHES):
        for step in steps.until_flush():
            plan.apply(expected, step)
        for log in logs:
            log.replay_to(f"flush-{number}")
        for name in ("ssd", "smr"):
            subprocess.run(["cp", "--sparse=always", share / f"{name}.replayed", members / name],
                           check=True)
        checked(share / "data", f"as flush {number} left it")
        with Serving(str(stack), share / "data") as server:
            client = Client(server.socket)
            found = b"".join(client.read(at, min(1 << 20, size - at))
                             for at in range(0, size, 1 << 20))
            client.close()
        wrong = [at for at in range(0, size, plan.BLOCK)
                 if found[at:at + plan.BLOCK] != expected[at:at + plan.BLOCK]]
        assert not wrong, f"after flush {number}: {len(wrong)} blocks differ, the first at {wrong[0]}"
        checked(share / "data", f"recovered after flush {number}")
    done = subprocess.run([IMBREX, "inspect", share / "data", "--json"], capture_output=True, text=True, check=True)
    members = {member["name"]: member for member in json.loads(done.stdout)["members"]}
    # Each rewrite of a band, and each band that the bypass has filled, writes one table.
    tables = members["smr"]["translation"]["generation"]
    assert tables >= REWRITES_MIN, f"only {tables} bands were written"
    print(f"{FLUSHES} flushes, {tables} bands written: 0 of {FLUSHES * (size // plan.BLOCK)} blocks differ, check --data "
          "clean before and after each recovery")


def checked(data, when):
    done = subprocess.run([IMBREX, "check", "--data", data], capture_output=True, text=True)
    assert done.returncode == 0, f"{when}: check says\n{done.stdout}{done.stderr}"


main()
