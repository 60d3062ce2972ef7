#!/usr/bin/env python3
"""A disk of a stack over files cannot be opened at a start: its file is missing, a byte short, locked by somebody, or no
file. Either the start is refused with the name of the disk, or what is served is right or an error; then a few blocks are
written. With the disk back, every block is what was written last. Two rounds a stack, 200 in all under IMBREX_SOAK=1."""

import errno
import fcntl
import os
import random
import signal

from _kill import Killable
from _nbd import Client
from _serving import SCRATCH, create

BLOCK = 4096
SIZE = 16 << 20
BANDS = ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB")
CACHE = ("cache.capacity=1MiB", *BANDS)
# Small enough for blocks to go all the way down.
BUFFERS = ("buffer.capacity=1MiB", "cache.capacity=2MiB")
PLAIN = tuple(f"disk-{number}" for number in range(4))
BACKED = ("spanned", "striped")
STACKS = {
    "s-block": (BUFFERS, ("disk", "ssd")),
    "hwsr": (BUFFERS, ("disk", "ssd")),
    "pore": (("cache.zone=2MiB", *CACHE), ("smr", "ssd")),
    "lru-band": (CACHE, ("smr", "ssd")),
    "smr-only": (BANDS, ("smr",)),
    "cmr-only": ((), ("cmr",)),
    "hdd": ((), ("disk",)),
    "spanned": ((), PLAIN),
    "striped": ((), PLAIN),
}
OTHERS = {
    name: (("cache.zone=2MiB", *CACHE) if zoned else CACHE, ("smr", "ssd"))
    for name, zoned in {"pore-cf": True, "pore-pf": True, "ride": False, "lru": False,
                        "pore-archive": True, "lru-archive": False, "ride-archive": False}.items()
}
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
ROUNDS = 200


class Missing:
    """The file is somewhere else."""

    def __init__(self, path):
        self.path, self.away = path, path.with_suffix(".away")
        path.rename(self.away)

    def back(self):
        self.away.rename(self.path)


class NoFile(Missing):
    """A directory is where the file should be."""

    def __init__(self, path):
        super().__init__(path)
        path.mkdir()

    def back(self):
        self.path.rmdir()
        super().back()


class Short:
    """The last byte is cut off."""

    def __init__(self, path):
        self.path, self.size = path, path.stat().st_size
        with open(path, "rb") as file:
            file.seek(self.size - 1)
            self.last = file.read(1)
        os.truncate(path, self.size - 1)

    def back(self):
        with open(self.path, "r+b") as file:
            file.seek(self.size - 1)
            file.write(self.last)


class Locked:
    """Somebody else has it open."""

    def __init__(self, path):
        self.file = open(path, "rb")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def back(self):
        self.file.close()


WAYS = (Missing, Short, Locked, NoFile)


def start(stack, data):
    """A server that is up, or what one that did not come up has said."""
    server = Killable(stack, data)
    try:
        return server.__enter__(), None
    except AssertionError:
        said = server.said()
        assert server.process.wait(timeout=60) == 1, said
        server.said_file.close()
        return None, said


def stop(server, rng):
    """Ends it in order, or as the death of the process does: both lose nothing that was answered."""
    server.process.send_signal(rng.choice((signal.SIGTERM, signal.SIGKILL)))
    server.process.communicate(timeout=120)
    server.said_file.close()


def write_somewhere(client, rng, known, count):
    for _ in range(count):
        # Half of them near the start, so that blocks are written again.
        end = SIZE // BLOCK // rng.choice((1, 16))
        blocks = rng.randint(1, 8)
        first = rng.randrange(end - blocks)
        data = rng.randbytes(blocks * BLOCK)
        parts = {first + at: data[at * BLOCK:(at + 1) * BLOCK] for at in range(blocks)}
        try:
            client.write(first * BLOCK, data)
            known.update({block: [part] for block, part in parts.items()})
        except OSError as error:
            assert error.errno == errno.EIO, error
            # What a failed write leaves is the old block or the new one.
            for block, part in parts.items():
                known[block] = known.get(block, [bytes(BLOCK)]) + [part]


def verify(client, known, what):
    """How many blocks cannot be read; all others are as they were written."""
    failed = 0
    for block, allowed in sorted(known.items()):
        try:
            found = client.read(block * BLOCK, BLOCK)
        except OSError as error:
            assert error.errno == errno.EIO, error
            failed += 1
            continue
        kind = "zeroes" if not any(found) else f"{found[:8]}"
        assert found in allowed, f"{what}: block {block} is {kind}, neither what was written nor an error"
    return failed


def flush(client):
    try:
        client.flush()
    except OSError as error:
        assert error.errno == errno.EIO, error


class Image:
    """An image that goes through many rounds."""

    def __init__(self, stack, settings, disks):
        self.stack, self.known = stack, {}
        if stack not in BACKED:
            self.data = create(stack, f"{SIZE >> 20}MiB", *settings)
            self.paths = {disk: self.data / f"{disk}.img" for disk in disks}
            return
        # An image of these has the size of its disks.
        self.paths = {disk: SCRATCH / f"{stack}-{disk}.disk" for disk in disks}
        for path in self.paths.values():
            path.touch()
            os.truncate(path, SIZE // len(disks) + (64 << 10))
        self.data = create(stack, None, *(f"{disk}.backing={path}" for disk, path in self.paths.items()))

    def fill(self, rng):
        server, said = start(self.stack, self.data)
        assert server, said
        client = Client(server.socket)
        write_somewhere(client, rng, self.known, 150)
        client.flush()
        stop(server, rng)

    def lose(self, disk, way, rng):
        """True when requests were served without the disk."""
        what = f"{self.stack}, {disk}, {way.__name__}"
        lost = way(self.paths[disk])
        server, said = start(self.stack, self.data)
        if server:
            assert f"node `{disk}`" in server.said(), f"{what}: {server.said()}"
            client = Client(server.socket)
            verify(client, self.known, what)
            write_somewhere(client, rng, self.known, 5)
            flush(client)
            verify(client, self.known, what)
            stop(server, rng)
        else:
            assert f"node `{disk}`" in said, f"{what}: {said}"
        lost.back()
        return server is not None

    def check(self, rng, what):
        server, said = start(self.stack, self.data)
        assert server, f"{what}: with the disk back: {said}"
        client = Client(server.socket)
        failed = verify(client, self.known, f"{what}, with the disk back")
        assert failed == 0, f"{what}: {failed} blocks cannot be read with the disk back"
        stop(server, rng)


def play(stack, settings, disks, rounds, seed):
    rng, image, served = random.Random(seed), Image(stack, settings, disks), 0
    for number in range(rounds):
        disk, way = disks[number % len(disks)], WAYS[(number // len(disks) + seed) % len(WAYS)]
        image.fill(rng)
        served += image.lose(disk, way, rng)
        image.check(rng, f"{stack}, {disk}, {way.__name__}")
    print(f"{stack}: {rounds} rounds, {rounds - served} starts refused, {served} served; {len(image.known)} blocks right",
          flush=True)


CHOSEN = {**STACKS, **OTHERS} if IS_SOAK else STACKS
for place, (name, (settings, disks)) in enumerate(CHOSEN.items()):
    play(name, settings, disks, -(-ROUNDS // len(CHOSEN)) if IS_SOAK else 2, place)
