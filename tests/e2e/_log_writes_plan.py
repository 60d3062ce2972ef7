"""What is written between two flushes: the same sequence for the same seed, in the guest that does it and
on the host that checks it."""

import random
import struct

BLOCK = 4096
REQUESTS_PER_FLUSH_MAX = 12
REQUEST_BLOCKS_MAX = 16


class Steps:
    """An endless sequence of writes, zeroings and trims."""

    def __init__(self, seed, size):
        self.random = random.Random(seed)
        self.blocks = size // BLOCK
        self.version = 0

    def until_flush(self):
        """The requests up to the next flush."""
        for _ in range(self.random.randint(1, REQUESTS_PER_FLUSH_MAX)):
            count = self.random.choice((1, 1, 1, 2, 4, REQUEST_BLOCKS_MAX))
            # A small hot area beside the whole device, so that blocks are overwritten and evicted.
            reach = self.blocks if self.random.random() < 0.7 else min(self.blocks, 256)
            first = self.random.randrange(reach - count)
            kind = self.random.choices(("write", "forced", "zero", "trim"), (16, 2, 1, 1))[0]
            self.version += 1
            yield kind, first, count, self.version


def content(lba, version):
    """A block that says where it belongs and which write it was."""
    return struct.pack("<QQ", lba, version) * (BLOCK // 16)


def data_of(step):
    _, first, count, version = step
    return b"".join(content(first + at, version) for at in range(count))


def do(client, step):
    kind, first, count, _ = step
    if kind == "zero":
        client.zero(first * BLOCK, count * BLOCK)
    elif kind == "trim":
        client.trim(first * BLOCK, count * BLOCK)
    else:
        client.write(first * BLOCK, data_of(step), fua=kind == "forced")


def apply(device, step):
    """The same on a bytearray; a trim may leave what was there, so it is told apart."""
    kind, first, count, _ = step
    place = slice(first * BLOCK, (first + count) * BLOCK)
    device[place] = bytes(count * BLOCK) if kind in ("zero", "trim") else data_of(step)
