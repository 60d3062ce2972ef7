#!/usr/bin/env python3
"""Blocks of a served parity array (`raid4smr`) rot while it is down: bytes change at the homes, in slots of the data disk, on the
parity disk and in a table of checksums on each of the two. `imbrex check --data` names each of them. Served again, a scrub
finds and repairs all, a second one finds none, every block is right, and `check --data` is clean. So it is where the rotten
blocks are read first, which gives what was written, and where clients write meanwhile."""

import concurrent.futures
import json
import os
import random
import subprocess
import time

from _array import HOMES, Array, check_image, parity_stack_file
from _load import BLOCK, Load, check, contents
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

SIZE_MIB = 16
BLOCKS = (SIZE_MIB << 20) // BLOCK
LOAD_S = 2
# Of each home, of the data disk and of the parity disk so many blocks rot, no two of them in one row.
ROTTEN = 12


def parity_array(data):
    done = subprocess.run([IMBREX, "inspect", data, "--json", "--all"], capture_output=True, text=True, check=True)
    return next(it["parity_array"] for it in json.loads(done.stdout)["members"] if "parity_array" in it)


def blocks_with_data(path):
    """The blocks of a sparse file that are not holes, with what they hold."""
    with open(path, "rb") as file:
        length, at = os.path.getsize(path), 0
        while at < length:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            file.seek(start // BLOCK * BLOCK)
            for block in range(start // BLOCK, -(-at // BLOCK)):
                yield block, file.read(BLOCK)


class Rot:
    """Which blocks of an image rot."""

    def __init__(self, data, versions, rng):
        self.array = parity_array(data)
        self.data, self.versions, self.rng = data, versions, rng
        self.rows = set()
        # Of blocks of the host that rot, the file and its block; of all others only these.
        self.of_host, self.others = {}, []
        self.slots = dict(self.array["slot_of"])
        self.block_of = {place + at: block + at for block, blocks, place in self.array["places"] for at in range(blocks)}
        self.find_homes()
        self.find_slots()
        self.find_parity()
        first = self.array["first_table_block"]
        # Another table on each disk: what is wrong on both nobody knows any more.
        self.tables = [("data", first), ("parity", first + 1)]

    def take(self, rows):
        """Some rows that nothing has rotted in yet."""
        free = sorted(set(rows) - self.rows)
        assert len(free) >= ROTTEN, f"there are {len(free)} rows to rot"
        taken = self.rng.sample(free, ROTTEN)
        self.rows.update(taken)
        return taken

    def find_homes(self):
        """Blocks at home are found by what they hold, where it is there once: a band row that was collected leaves copies."""
        band, lie_at = self.array["band_blocks"], self.array["band_rows_lie_at"]
        for number, home in enumerate(HOMES):
            where, rows = {}, {}
            for at, held in blocks_with_data(self.data / f"{home}.img"):
                where.setdefault(held, []).append(at)
            for place, block in self.block_of.items():
                found = where.get(contents(block, self.versions[block]), [])
                if place % len(HOMES) == number and place not in self.slots and self.versions[block] and len(found) == 1:
                    row = place // len(HOMES)
                    rows[lie_at[row // band] * band + row % band] = (block, found[0])
            for row in self.take(rows):
                block, at = rows[row]
                self.of_host[block] = (home, at)

    def find_slots(self):
        by_slot = {slot: self.block_of[place] for place, slot in self.slots.items()}
        for slot in self.take(slot for slot, block in by_slot.items() if self.versions[block]):
            at = self.array["first_block"] + slot
            assert self.block("data", at) == contents(by_slot[slot], self.versions[by_slot[slot]]), f"slot {slot}"
            self.of_host[by_slot[slot]] = ("data", at)

    def find_parity(self):
        rows = (row for runs in self.array["held"] for start, end in runs for row in range(start, end))
        self.others = [("parity", self.array["first_block"] + row) for row in self.take(rows)]

    def block(self, member, at):
        with open(self.data / f"{member}.img", "rb") as file:
            file.seek(at * BLOCK)
            return file.read(BLOCK)

    def all(self):
        return [*self.of_host.values(), *self.others, *self.tables]

    def happens(self, data):
        """Some bytes of each block change."""
        for member, at in self.all():
            with open(data / f"{member}.img", "r+b") as file:
                file.seek(at * BLOCK + self.rng.randrange(BLOCK - 16))
                here = file.tell()
                bytes_ = file.read(self.rng.randint(1, 16))
                file.seek(here)
                file.write(bytes(byte ^ self.rng.randint(1, 255) for byte in bytes_))


def must_find(data, rot):
    """`check --data` names each block that has rotted, and no other."""
    done = subprocess.run([IMBREX, "check", data, "--data", "--json"], capture_output=True, text=True)
    found = [(it["member"], it["structure"], it["problem"]) for it in json.loads(done.stdout)["findings"]]
    expected = [(member, "data", f"at block {at} of the member:") for member, at in (*rot.of_host.values(), *rot.others)]
    expected += [(member, "table of checksums", "") for member, _ in rot.tables]
    assert len(found) == len(expected), f"{len(found)} of {len(expected)}: {found}"
    for member, structure, words in expected:
        ours = [it for it in found if it[:2] == (member, structure) and words in " ".join(it)]
        assert len(ours) == 1, f"{member}, {structure}, {words}: {found}"


def copy_of(data, name):
    subprocess.run(["cp", "-r", "--sparse=always", data, SCRATCH / name], check=True)
    return SCRATCH / name


def finds_none(server):
    found = server.scrub()
    assert found == (0, 0, 0), f"the second scrub: {found}"
    assert server.unreadable_blocks() == 0


def is_right(stack, data, versions):
    check_image(data)
    with Array(stack, data) as server:
        check(server, versions, {})


def scrub_alone(stack, data, versions, rot):
    with Array(stack, data) as server:
        found = server.scrub()
        count = len(rot.of_host) + len(rot.others)
        # A table that was read to compare with is right again before the scrub comes to it.
        assert count <= found[0] == found[1] <= count + len(rot.tables) and found[2] == 0, f"{count} have rotted: {found}"
        finds_none(server)
        check(server, versions, {})
    print(f"a scrub has found and repaired {found[0]} blocks, a second one none")


def reads_first(stack, data, versions, rot):
    with Array(stack, data) as server:
        client = Client(server.socket)
        for block in rot.of_host:
            assert client.read(block * BLOCK, BLOCK) == contents(block, versions[block]), f"block {block}: {rot.of_host[block]}"
        client.close()
        check(server, versions, {})
        found = server.scrub()
        # Reads have had band rows written anew: what had rotted there beside the blocks of the host is right already.
        assert found[0] == found[1] <= len(rot.all()) and found[2] == 0, found
        finds_none(server)
        check(server, versions, {})
    print(f"{len(rot.of_host)} blocks were read right; a scrub after that has found and repaired {found[0]}, a second one none")


def scrub_under_load(stack, data, versions, rng):
    load = Load(versions, 9 << 32, rng)
    with Array(stack, data) as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
        running = threads.submit(load.run, server.socket)
        try:
            found = server.scrub()
        finally:
            load.stop()
        running.result()
        assert found[0] == found[1] and found[2] == 0, found
        finds_none(server)
        check(server, versions, {})
    print(f"a scrub beside {load.answered} requests has found and repaired {found[0]} blocks, a second one none")


def main():
    rng = random.Random(3)
    stack = parity_stack_file("rotten")
    data = create(stack, f"{SIZE_MIB}MiB")
    versions = [0] * BLOCKS
    load = Load(versions, 1 << 32, rng)
    with Array(stack, data) as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
        running = threads.submit(load.run, server.socket)
        time.sleep(LOAD_S)
        load.stop()
        running.result()
        facts = server.facts()
    assert facts["collections"] > 0, facts
    check_image(data)
    rot = Rot(data, versions, rng)
    rot.happens(data)
    must_find(data, rot)
    scrub_alone(stack, rotten := copy_of(data, "scrubbed"), versions, rot)
    is_right(stack, rotten, versions)
    reads_first(stack, rotten := copy_of(data, "read"), versions, rot)
    is_right(stack, rotten, versions)
    scrub_under_load(stack, rotten := copy_of(data, "loaded"), versions, rng)
    is_right(stack, rotten, versions)


main()
