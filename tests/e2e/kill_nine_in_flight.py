#!/usr/bin/env python3
"""A served stack of each system is killed with SIGKILL while many requests are in flight, started again, and every block of
the device is read. 3 rounds on the same image, or 20 under IMBREX_SOAK=1; of RIDE half as many.

The client knows of every write whether its answer came. An answered write must be there, flushed or not: the death
of a process loses nothing that the system has taken. Of a write that was in flight each block is either as before
or as written, and stays so from then on. The cache and the persistent cache are small, so that destages, rewrites
of bands and checkpoints are cut off as well."""

import os
import random
import signal
import struct
import threading
import time

from _kill import Killable
from _nbd import FLUSH, READ, WRITE, WRITE_ZEROES, Client, Pipeline
from _serving import create

ROUNDS = 20 if os.environ.get("IMBREX_SOAK") == "1" else 3
BLOCK = 4096
BLOCKS = (1 << 30) // BLOCK
REQUEST_BLOCKS_MAX = 16
CHECK_BLOCKS = 256
# Half of the requests go to a few blocks, which are so written many times in one run.
HOT_BLOCKS = 2048


def contents(block, version):
    """What a block holds after the write of that number; 0 is zeroes."""
    return struct.pack("<QQ", block, version) * (BLOCK // 16) if version else bytes(BLOCK)


class Load:
    """Random requests on one connection until the server dies; no two in flight at a time share a block."""

    def __init__(self, versions, version_base, rng):
        self.versions = versions
        self.version_base = version_base
        self.rng = rng
        self.busy = set()
        self.answered = 0

    def run(self, server, kill_after_s):
        """Answers by block what may be there beside the answered version: the writes that were in flight."""
        client = Pipeline(server.socket)
        depth = self.rng.randint(16, 32)
        timer = threading.Timer(kill_after_s, server.kill)
        timer.start()
        try:
            while True:
                while len(client.in_flight) < depth:
                    self.send(client)
                self.take(client)
        except ConnectionError:
            self.drain(client)
            timer.join()
        finally:
            timer.cancel()
        unanswered = {}
        for _, (command, blocks, version) in client.in_flight.values():
            if command in (WRITE, WRITE_ZEROES):
                unanswered.update((block, version) for block in blocks)
        return unanswered

    def drain(self, client):
        """Takes the answers that were sent before the server died."""
        try:
            while True:
                self.take(client)
        except ConnectionError:
            pass

    def send(self, client):
        choice = self.rng.random()
        if choice < 0.005:
            return client.send((FLUSH, range(0), 0), FLUSH)
        blocks = self.free_blocks()
        offset, length = blocks.start * BLOCK, len(blocks) * BLOCK
        self.busy.update(blocks)
        if choice < 0.05:
            return client.send((READ, blocks, 0), READ, offset, length)
        if choice < 0.07:
            return client.send((WRITE_ZEROES, blocks, 0), WRITE_ZEROES, offset, length)
        version = self.version_base + client.cookie + 1
        data = b"".join(contents(block, version) for block in blocks)
        return client.send((WRITE, blocks, version), WRITE, offset, length, data)

    def free_blocks(self):
        while True:
            count = self.rng.randint(1, REQUEST_BLOCKS_MAX)
            within = HOT_BLOCKS if self.rng.random() < 0.5 else BLOCKS
            start = self.rng.randrange(within - count)
            if self.busy.isdisjoint(range(start, start + count)):
                return range(start, start + count)

    def take(self, client):
        (command, blocks, version), data = client.answer()
        self.busy.difference_update(blocks)
        self.answered += 1
        if command == READ:
            for number, block in enumerate(blocks):
                found = data[number * BLOCK:(number + 1) * BLOCK]
                assert found == contents(block, self.versions[block]), wrong(block, found, [self.versions[block]])
        elif command != FLUSH:
            for block in blocks:
                self.versions[block] = version


def wrong(block, found, allowed):
    """What is wrong with a block, in few words."""
    return f"block {block} should be of write {allowed}, and begins with {struct.unpack('<QQ', found[:16])}"


def check(server, versions, unanswered):
    """Reads the whole device, and settles which of two versions the blocks in flight have."""
    client = Client(server.socket)
    problems = []
    for start in range(0, BLOCKS, CHECK_BLOCKS):
        data = client.read(start * BLOCK, CHECK_BLOCKS * BLOCK)
        for block in range(start, start + CHECK_BLOCKS):
            found = data[(block - start) * BLOCK:(block - start + 1) * BLOCK]
            if found == contents(block, versions[block]):
                continue
            if block in unanswered and found == contents(block, unanswered[block]):
                versions[block] = unanswered[block]
                continue
            problems.append(wrong(block, found, [versions[block], unanswered.get(block)]))
    client.close()
    assert not problems, f"{len(problems)} blocks are wrong: " + "; ".join(problems[:5])


CACHES = "cache.capacity=20MiB", "translation.persistent_cache=16MiB"
BUFFERS = "cache.capacity=20MiB", "buffer.capacity=4MiB"


def main(stack, rounds, settings):
    rng = random.Random(1)
    versions = [0] * BLOCKS
    data = create(stack, "1GiB", *settings)
    for number in range(rounds):
        load = Load(versions, number << 32, rng)
        with Killable(stack, data) as server:
            unanswered = load.run(server, rng.uniform(0.5, 4))
            ended = server.process.returncode
            assert ended == -signal.SIGKILL, f"the server ended with {ended} before it was killed: {server.said()}"
            assert load.answered and unanswered, "the kill was not in the middle of the work"
        started = time.monotonic()
        with Killable(stack, data) as server:
            took_s = time.monotonic() - started
            assert "was not closed in order: recovered in" in server.said(), server.said()
            check(server, versions, unanswered)
            if number % 2 == 0:
                # The next round finds what a recovery alone has left.
                server.kill()
        print(f"{stack}, round {number + 1}: {load.answered} requests answered, {len(unanswered)} blocks in flight, "
              f"served again after {took_s:.2f} s, every block checked", flush=True)


main("pore", ROUNDS, CACHES)
main("ride", max(1, ROUNDS // 2), CACHES)
main("hwsr", max(1, ROUNDS // 2), BUFFERS)
main("s-block", max(1, ROUNDS // 2), BUFFERS)
