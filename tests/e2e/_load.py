"""Random requests on one connection, of which a test knows whether they were answered: what a device must hold, and what
it may hold where a request was in flight when its server died."""

import struct
import time

from _nbd import FLUSH, READ, WRITE, WRITE_ZEROES, Client, Pipeline

BLOCK = 4096
REQUEST_BLOCKS_MAX = 16
CHECK_BLOCKS = 256
# No request of a test waits longer for its answer.
ANSWER_TIMEOUT_S = 300
# Half of the requests go to a few blocks, which are so written many times in one run.
HOT_BLOCKS = 2048


def contents(block, version):
    """What a block holds after the write of that number; 0 is zeroes."""
    return struct.pack("<QQ", block, version) * (BLOCK // 16) if version else bytes(BLOCK)


class Load:
    """Random requests on one connection until the server dies or `stop` is called; no two in flight at a time share a
    block. An error that is answered ends it as an exception. `versions` has by block the number of the last answered
    write."""

    def __init__(self, versions, version_base, rng):
        self.versions = versions
        self.version_base = version_base
        self.rng = rng
        self.busy = set()
        self.answered = 0
        # The longest time from a request to its answer since a test last set it to 0.
        self.slowest_s = 0.0
        self.is_stopping = False

    def run(self, socket):
        """Answers by block what may be there beside the answered version: the writes that were in flight."""
        client = Pipeline(socket)
        client.socket.settimeout(ANSWER_TIMEOUT_S)
        depth = self.rng.randint(16, 32)
        try:
            while not self.is_stopping:
                while len(client.in_flight) < depth:
                    self._send(client)
                self._take(client)
        except ConnectionError:
            pass
        self._drain(client)
        unanswered = {}
        for _, (command, blocks, version, _) in client.in_flight.values():
            if command in (WRITE, WRITE_ZEROES):
                unanswered.update((block, version) for block in blocks)
        return unanswered

    def stop(self):
        """Has `run` send no more, take its answers and end."""
        self.is_stopping = True

    def _drain(self, client):
        """Takes the answers that come; of a dead server those that it sent before it died."""
        try:
            while client.in_flight:
                self._take(client)
            client.close()
        except ConnectionError:
            pass

    def _send(self, client):
        choice, now = self.rng.random(), time.monotonic()
        if choice < 0.005:
            return client.send((FLUSH, range(0), 0, now), FLUSH)
        blocks = self._free_blocks()
        offset, length = blocks.start * BLOCK, len(blocks) * BLOCK
        self.busy.update(blocks)
        if choice < 0.05:
            return client.send((READ, blocks, 0, now), READ, offset, length)
        if choice < 0.07:
            return client.send((WRITE_ZEROES, blocks, 0, now), WRITE_ZEROES, offset, length)
        version = self.version_base + client.cookie + 1
        data = b"".join(contents(block, version) for block in blocks)
        return client.send((WRITE, blocks, version, now), WRITE, offset, length, data)

    def _free_blocks(self):
        while True:
            count = self.rng.randint(1, REQUEST_BLOCKS_MAX)
            within = HOT_BLOCKS if self.rng.random() < 0.5 else len(self.versions)
            start = self.rng.randrange(within - count)
            if self.busy.isdisjoint(range(start, start + count)):
                return range(start, start + count)

    def _take(self, client):
        (command, blocks, version, sent_s), data = client.answer()
        self.busy.difference_update(blocks)
        self.answered += 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - sent_s)
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
    for start in range(0, len(versions), CHECK_BLOCKS):
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
