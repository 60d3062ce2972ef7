#!/usr/bin/env python3
"""Disks of served stacks are exchanged between two starts: an older copy, another disk, a foreign one, zeroes. Each is
refused with its name, nothing is written, and `--read-only --force` shows what is there; with the right disk back
everything that was flushed is there. Images without labels get some at their first start. Here they are made like
images of the build before; soak_images_before.py has images that it has made itself."""

import os
import random
import shutil
import subprocess

from _kill import Killable
from _labels import BLOCK, check_labels, read_label, state, version_of, without_labels
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

SIZE = 64 << 20
BANDS = ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB")
STACKS = {
    "cmr-only": (),
    "smr-only": BANDS,
    "pore": ("cache.capacity=1MiB", "cache.zone=2MiB", *BANDS),
    "hwsr": (),
    "s-block": (),
    "striped": (),
    "spanned": (),
}
# The others take longer: `all`, or names.
SOAK = os.environ.get("IMBREX_SOAK") == "1"
CHOSEN = os.environ.get("IMBREX_LABEL_STACKS") or ("all" if SOAK else "hwsr,striped")


def size_of(stack):
    return None if stack in ("s-block", "spanned") else f"{SIZE >> 20}MiB"


def use(stack, data, known, rng, kill=False):
    """Serves, compares what is known, writes and flushes, and ends."""
    with Killable(stack, data) as server:
        client = Client(server.socket)
        verify(client, known)
        for _ in range(40):
            write(client, rng, known)
        client.flush()
        said = server.said()
        if kill:
            server.kill()
    return said


def write(client, rng, known):
    first = rng.randrange(min(client.size, SIZE) // BLOCK - 8)
    data = rng.randbytes(rng.randint(1, 8) * BLOCK)
    client.write(first * BLOCK, data)
    for number in range(len(data) // BLOCK):
        known[first + number] = data[number * BLOCK:(number + 1) * BLOCK]


def verify(client, known):
    for block, data in sorted(known.items()):
        assert client.read(block * BLOCK, BLOCK) == data, f"block {block}"


def refused(stack, data, *options):
    command = [IMBREX, "serve", stack, "--data", data, "--socket", SCRATCH / "refused.sock", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, f"exit status {done.returncode}: {done.stderr}"
    assert done.stderr.count("imbrex:") == 1, f"more than one error: {done.stderr}"
    return done.stderr


def copy(path, to):
    subprocess.run(["cp", "--sparse=always", path, to], check=True)


def exchanged(stack, data, disk, foreign, known, rng):
    """The disk is exchanged in every way; each is refused, and the right one is taken again."""
    right, old = SCRATCH / "right", SCRATCH / "old"
    copy(disk, old)
    use(stack, data, known, rng, kill=rng.random() < 0.5)
    disk.rename(right)
    others = [other for other in sorted(data.glob("*.img"))]

    def zeroed(path):
        with open(path, "wb") as file:
            file.truncate(right.stat().st_size)

    ways = {
        "it is an older copy of itself": lambda path: copy(old, path),
        "it has no label": zeroed,
        "it is a disk of image": lambda path: copy(foreign / disk.name, path),
    }
    same = [other for other in others if other.stat().st_size == right.stat().st_size]
    if same:
        ways["it is disk "] = lambda path: copy(same[0], path)
    for words, put in ways.items():
        put(disk)
        before = state(data)
        said = refused(stack, data)
        assert f"node `{disk.stem}`" in said and words in said and disk.name in said, f"{words}: {said}"
        # A cache itself refuses an older copy of its members, whatever their labels say.
        if words.startswith("it is an older") and stack != "pore":
            with Killable(stack, data, "--read-only", "--force") as server:
                assert "--force: the labels" in server.said(), server.said()
                Client(server.socket).read(0, BLOCK)
        assert state(data) == before, "a refusal has written"
        disk.unlink()
    right.rename(disk)
    use(stack, data, known, rng)


def round_of(stack, seed):
    rng, known = random.Random(seed), {}
    data = create(stack, size_of(stack), *STACKS[stack])
    foreign = create(stack, size_of(stack), *STACKS[stack])
    assert version_of(data) == 4
    use(stack, data, known, rng)
    check_labels(sorted(data.glob("*.img")))
    for disk in sorted(data.glob("*.img")):
        exchanged(stack, data, disk, foreign, known, rng)
    shutil.rmtree(data)
    shutil.rmtree(foreign)


def goes_over(stack, seed):
    """An image like those of the build before, closed and killed, gets labels and is whole."""
    for kill in (False, True):
        rng, known = random.Random(seed), {}
        data = create(stack, size_of(stack), *STACKS[stack])
        use(stack, data, known, rng, kill=kill)
        without_labels(data)
        before = state(data)
        with Killable(stack, data, "--read-only") as server:
            verify(Client(server.socket), known)
        assert state(data) == before and version_of(data) == 3, "read only"
        said = use(stack, data, known, rng, kill=kill)
        assert "its disks have labels from now on (format version 4)" in said, said
        assert version_of(data) == 4
        # Count 1 would say that a creation was killed, and the next one would remove the disk.
        assert all(copy["mark"][0] > 1 for disk in data.glob("*.img") for copy in read_label(disk))
        use(stack, data, known, rng)
        disk = sorted(data.glob("*.img"))[-1]
        copy(disk, SCRATCH / "old")
        use(stack, data, known, rng)
        copy(disk, SCRATCH / "right")
        copy(SCRATCH / "old", disk)
        if len(list(data.glob("*.img"))) > 1:
            assert "an older copy" in refused(stack, data)
        copy(SCRATCH / "right", disk)
        use(stack, data, known, rng)
        shutil.rmtree(data)


for at, name in enumerate(STACKS):
    if CHOSEN != "all" and name not in CHOSEN.split(","):
        continue
    if name in ("pore", "hwsr", "striped", "spanned", "s-block"):
        round_of(name, at)
    goes_over(name, at)
    print(f"{name}: exchanged disks refused, images without labels served")
