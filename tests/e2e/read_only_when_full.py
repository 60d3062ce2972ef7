#!/usr/bin/env python3
"""A device on a file system that runs full: the server is killed, the next one cannot start and names `--read-only`,
which serves everything that was answered from the full file system, and again after that was mounted read-only. The
images are the same afterwards, and with room again the ordinary server starts."""

import errno
import hashlib
import os
import random
import subprocess
import sys

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH

BLOCK = 4096
SIZE = 64 << 20
ROOM = 24 << 20
# All of the device, its cache and its log.
AMPLE = 160 << 20
STACKS = (
    ("pore", ("cache.capacity=4MiB", "translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=4MiB")),
    ("smr-only", ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=4MiB")),
)

if os.geteuid() != 0:
    print("skipped: mounting a small file system needs root")
    sys.exit(77)
mount = SCRATCH / "small"
mount.mkdir()
done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", mount], capture_output=True, text=True)
if done.returncode != 0:
    print(f"skipped: a tmpfs cannot be mounted here: {done.stderr.strip()}")
    sys.exit(77)


def remount(*options):
    subprocess.run(["mount", "-o", ",".join(("remount", *options)), mount], check=True)


def hash_of(path):
    """Of the parts of a file that are no holes, each with its place."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        at, end = 0, file.seek(0, os.SEEK_END)
        while at < end:
            try:
                start = file.seek(at, os.SEEK_DATA)
            except OSError as error:
                assert error.errno == errno.ENXIO, error
                break
            at = file.seek(start, os.SEEK_HOLE)
            digest.update(f"{start} {at} ".encode() + os.pread(file.fileno(), at - start, start))
    return end, digest.hexdigest()


def hashes(data):
    return {path.name: hash_of(path) for path in sorted(data.iterdir())}


def serve_refused(stack, data):
    command = [IMBREX, "serve", stack, "--data", data, "--socket", SCRATCH / "refused.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, f"exit status {done.returncode}: {done.stderr}"
    return done.stderr


def write_until_full(client, rng, known):
    """Writes until the file system has no room. What was answered goes into `known`, by block."""
    while True:
        blocks = rng.randint(1, 64)
        first = rng.randrange(SIZE // BLOCK - blocks)
        data = rng.randbytes(blocks * BLOCK)
        try:
            client.write(first * BLOCK, data)
        except OSError as error:
            assert error.errno == errno.ENOSPC, f"another error: {error}"
            # What a failed write leaves is unknown.
            for block in range(first, first + blocks):
                known[block] = None
            return
        for number in range(blocks):
            known[first + number] = data[number * BLOCK:(number + 1) * BLOCK]


def verify(client, known, what):
    compared = 0
    for block, data in known.items():
        if data is not None:
            assert client.read(block * BLOCK, BLOCK) == data, f"{what}: block {block} is not what was answered"
            compared += 1
    return compared


def look(stack, data, known, what):
    before = hashes(data)
    with Killable(stack, data, "--read-only") as server:
        client = Client(server.socket)
        assert client.flags & 2, "the export does not say that it is read-only"
        compared = verify(client, known, what)
        try:
            client.write(0, bytes(BLOCK))
            raise AssertionError("a write was taken")
        except OSError as error:
            assert error.errno == errno.EPERM, error
        client.flush()
        client.close()
    assert hashes(data) == before, f"{what}: the files have changed"
    print(f"{stack}, {what}: {compared} blocks as they were answered", flush=True)


def round_of(stack, settings, seed):
    data = mount / stack
    options = [word for setting in settings for word in ("--set", setting)]
    command = [IMBREX, "create", stack, "--data", data, "--size", str(SIZE >> 20) + "MiB", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rng, known = random.Random(seed), {}
    with Killable(stack, data) as server:
        write_until_full(Client(server.socket), rng, known)
        server.kill()
    # Whatever room there is again since the last write failed goes as well.
    try:
        with open(mount / "rest", "wb", buffering=0) as rest:
            while True:
                rest.write(bytes(BLOCK))
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    assert os.statvfs(mount).f_bavail == 0
    said = serve_refused(stack, data)
    assert "`--read-only`" in said and "no space left" in said, said
    look(stack, data, known, "full")
    remount("ro")
    look(stack, data, known, "full and mounted read-only")
    remount("rw", f"size={AMPLE}")
    with Killable(stack, data) as server:
        client = Client(server.socket)
        verify(client, known, "with room again")
        client.write(0, bytes(BLOCK))
        client.close()
    subprocess.run([IMBREX, "check", data, "--data"], check=True, stdout=subprocess.DEVNULL)


try:
    for number, (stack, settings) in enumerate(STACKS):
        remount("rw", f"size={ROOM}")
        round_of(stack, settings, number)
        for path in [*(mount / stack).iterdir(), mount / "rest"]:
            path.unlink(missing_ok=True)
finally:
    subprocess.run(["umount", mount], check=True)
