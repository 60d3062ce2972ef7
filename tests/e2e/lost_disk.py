#!/usr/bin/env python3
"""A disk is cut or deleted under a served stack. Every read gives what was written or EIO, never zeroes or anything
older; the server stays up, names the disk once, and ends with an error when something that was answered may be lost.
The next start names the file; with the file as it was, everything that a flush has covered is there again."""

import errno
import os
import random
import shutil
import signal
import subprocess

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

BLOCK = 4096
SIZE = 16 << 20
SMALL = ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB")
STACKS = {
    "cmr-only": ((), ("cmr",)),
    "smr-only": (SMALL, ("smr",)),
    "pore": (("cache.capacity=1MiB", "cache.zone=2MiB", *SMALL), ("smr", "ssd")),
}


def write_somewhere(client, rng, known):
    blocks = rng.randint(1, 8)
    first = rng.randrange(SIZE // BLOCK - blocks)
    data = rng.randbytes(blocks * BLOCK)
    client.write(first * BLOCK, data)
    for number in range(blocks):
        known[first + number] = data[number * BLOCK:(number + 1) * BLOCK]


def fails(action, *words):
    """True when it ends with EIO; any other error is one of the test."""
    try:
        action(*words)
    except OSError as error:
        assert error.errno == errno.EIO, error
        return True
    return False


def verify(client, known, what):
    """How many blocks are as they were written, and how many cannot be read; there is nothing else."""
    right = failed = 0
    for block, data in sorted(known.items()):
        found = []
        if fails(lambda at: found.append(client.read(at, BLOCK)), block * BLOCK):
            failed += 1
            continue
        assert found == [data], f"{what}: block {block} is {found[0][:8]}, neither {data[:8]} nor an error"
        right += 1
    return right, failed


def cut(path, bytes_left):
    os.truncate(path, bytes_left // BLOCK * BLOCK)


def start_refused(stack, data):
    command = [IMBREX, "serve", stack, "--data", data, "--socket", SCRATCH / "refused.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, f"exit status {done.returncode}: {done.stderr}"
    return done.stderr


def copy(path, to):
    subprocess.run(["cp", "--sparse=always", path, to], check=True)


def round_of(stack, disk, part, seed):
    """The disk is cut to a part of its length."""
    settings, _ = STACKS[stack]
    data, rng, known = create(stack, f"{SIZE >> 20}MiB", *settings), random.Random(seed), {}
    path, what = data / f"{disk}.img", f"{stack}, {disk} cut to {part}"
    with Killable(stack, data) as server:
        client = Client(server.socket)
        for _ in range(1200):
            write_somewhere(client, rng, known)
        client.flush()
        kept = SCRATCH / "kept.img"
        # Nothing that reaches the disk may be younger than the copy.
        server.process.send_signal(signal.SIGSTOP)
        copy(path, kept)
        cut(path, int(path.stat().st_size * part))
        server.process.send_signal(signal.SIGCONT)
        # Writes first, in half of the rounds: they are what would hide a cut.
        for _ in range(rng.randint(0, 1) * 20):
            block, content = rng.randrange(SIZE // BLOCK), rng.randbytes(BLOCK)
            # What a failed write leaves is the old block or the new one.
            failed = fails(client.write, block * BLOCK, content)
            known.pop(block, None) if failed else known.update({block: content})
        right, failed = verify(client, known, what)
        assert fails(client.flush), f"{what}: a flush was answered"
        verify(client, known, what)
        client.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 1, f"{what}: {server.said()}"
    said = server.said()
    assert said.count(f"node `{disk}`: {path} is lost: it has become shorter") == 1, f"{what}: {said}"
    assert "the flush at the end failed (disk is lost)" in said, f"{what}: {said}"
    said = start_refused(stack, data)
    assert f"node `{disk}`: {path} " in said and "bytes" in said, f"{what}: {said}"
    shutil.move(kept, path)
    with Killable(stack, data) as server:
        client = Client(server.socket)
        again, wrong = verify(client, known, f"{what}, restored")
        assert wrong == 0, f"{what}: {wrong} blocks cannot be read after the file came back"
        client.close()
    print(f"{what}: {right} blocks right, {failed} EIO; restored: {again} right", flush=True)


def deleted(stack):
    settings, disks = STACKS[stack]
    data, rng, known = create(stack, f"{SIZE >> 20}MiB", *settings), random.Random(7), {}
    with Killable(stack, data) as server:
        client = Client(server.socket)
        for disk in disks:
            (data / f"{disk}.img").unlink()
        for _ in range(600):
            write_somewhere(client, rng, known)
        client.flush()
        assert verify(client, known, f"{stack}, deleted") == (len(known), 0)
        client.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0, server.said()
    for disk in disks:
        assert server.said().count(f"{disk}.img was deleted: it is served until the server ends") == 1, server.said()
    said = start_refused(stack, data)
    for disk in disks:
        assert f"node `{disk}`: cannot open {data}/{disk}.img as a disk: No such file" in said, said
    print(f"{stack}, all disks deleted: {len(known)} blocks served", flush=True)


for name, (_, lost) in STACKS.items():
    for disk_lost in lost:
        for number, share in enumerate((0.0, 0.3, 0.9)):
            round_of(name, disk_lost, share, number)
    deleted(name)
