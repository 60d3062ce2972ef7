#!/usr/bin/env python3
"""Three parity arrays that share a data disk (`raid4smr-chain`), served: the shared disk is lost, which costs every array its
redundancy and no data. The server is
killed meanwhile, and the disk comes back. Then it is lost for good and a new one takes its place: each array is rebuilt and can lose a home."""

import random

from _array import Array
from _nbd import Client
from _serving import create

BLOCK = 4096
SIZE = 96 << 20
ARRAYS = 3
CHUNK = 1 << 20


class Host:
    """Writes here and there, and knows what it has written."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.known = bytearray(SIZE)

    def work(self, server, requests):
        client = Client(server.socket)
        for _ in range(requests):
            # Much of it again and again, so that the shared disk has slots.
            within = SIZE if self.rng.random() < 0.5 else 4 << 20
            length = BLOCK * self.rng.randint(1, 16)
            offset = BLOCK * self.rng.randrange((within - length) // BLOCK)
            data = self.rng.randbytes(length)
            client.write(offset, data)
            self.known[offset:offset + length] = data
        client.flush()
        client.close()

    def check(self, server, when):
        client = Client(server.socket)
        for offset in range(0, SIZE, CHUNK):
            assert client.read(offset, CHUNK) == self.known[offset:offset + CHUNK], f"{when}: at {offset}"
        client.close()


def arrays(server, expected):
    for array in range(ARRAYS):
        said = server.control(f"array-{array}", "status")
        assert f"array: {expected}" in said, said


def main():
    data, host = create("raid4smr-chain", "96MiB"), Host(1)
    server = Array("raid4smr-chain", data)
    with server:
        host.work(server, 1500)
        arrays(server, "whole")
        server.control("shared", "fail")
        arrays(server, "degraded")
        host.check(server, "without the shared disk")
        host.work(server, 700)
        server.kill()
    server = Array("raid4smr-chain", data)
    with server:
        # The disk is there again, with what it had: each array brings what was written meanwhile onto its part.
        for array in range(ARRAYS):
            server.wait_until_whole(f"array-{array}")
        host.check(server, "killed without the shared disk, which came back")
        server.control("shared", "fail")
        host.work(server, 300)
        server.control("shared", "replace")
        for array in range(ARRAYS):
            server.control(f"array-{array}", "rebuild")
        arrays(server, "whole")
        host.work(server, 700)
        for array in range(ARRAYS):
            server.control(f"home-{array}-{array}", "fail")
        arrays(server, "degraded")
        host.check(server, "a home of each array lost, behind the rebuild")
    print(f"{ARRAYS} arrays lost their data disk and then a home each; {SIZE // BLOCK} blocks are as they were written")


main()
