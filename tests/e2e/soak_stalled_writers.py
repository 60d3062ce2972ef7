#!/usr/bin/env python3
"""24 clients write and read 4 and 32 MiB beside 40 others that stall in the middle of a write: after the header, after half
of the payload, or sending a byte a second. No request may take over 2 s longer than without them, whichever way they stall. Some
come back whenever the server closes their connection."""

# Alone: it measures how long requests take.

import socket
import threading
import time

from _nbd import WRITE, Client, Pipeline
from _serving import Serving, create

MIB = 1 << 20
STALLED, ROUNDS = 40, 3
SIZES = [4 * MIB, 32 * MIB] * 12
# Those that stall are for the first 32 MiB.
OFFSETS = [32 * MIB + sum(SIZES[:index]) for index in range(len(SIZES))]
WAIT_S = 2.0


def stall(path, kind, size, comes_back, done):
    while not done.is_set():
        try:
            client = Pipeline(path)
            client.send(None, WRITE, 0, size, b"\1" * (size // 2 if kind == "half" else 0))
            while not done.wait(1 if kind == "trickle" else 0.1):
                if kind == "trickle":
                    client.socket.sendall(b"\1")
                if is_closed(client.socket):
                    break
        except OSError:
            # The server has closed the connection in the middle of what was sent.
            pass
        if not comes_back:
            return


def is_closed(connection):
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def use(path, offset, size, longest):
    client = Client(path)
    for number in range(ROUNDS):
        data = bytes([number + 2]) * size
        began = time.monotonic()
        client.write(offset, data)
        wrote = time.monotonic()
        found = client.read(offset, size)
        longest.append(max(wrote - began, time.monotonic() - wrote))
        assert found == data, f"{size} bytes at {offset}"
    client.close()


def longest_s(path):
    longest = []
    threads = [threading.Thread(target=use, args=(path, *place, longest)) for place in zip(OFFSETS, SIZES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(longest) == ROUNDS * len(SIZES), "a client failed"
    return max(longest)


def beside(path, kinds, sizes, comes_back):
    done = threading.Event()
    threads = [threading.Thread(target=stall, daemon=True,
                                args=(path, kinds[i % len(kinds)], sizes[i % len(sizes)], comes_back, done))
               for i in range(STALLED)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    longest = longest_s(path)
    done.set()
    return longest


KINDS = ["header", "half", "trickle"]
with Serving("lru", create("lru", "1GiB", "cache.capacity=1536MiB")) as server:
    longest_s(server.socket)
    alone = max(longest_s(server.socket) for _ in range(3))
    print(f"without them: {alone:.2f} s")
    slow = []
    for kinds in [[kind] for kind in KINDS] + [KINDS]:
        for mib in ([4], [32], [32, 4, 4, 32]):
            for comes_back in (False, True):
                took = beside(server.socket, kinds, [size * MIB for size in mib], comes_back)
                what = f"{'+'.join(kinds)} of {mib} MiB, {'coming back' if comes_back else 'once'}"
                print(f"{what}: {took:.2f} s", flush=True)
                if took > alone + WAIT_S:
                    slow.append(f"{what}: {took:.2f} s")
                # Their places are free when the server has seen them go.
                time.sleep(1.5)
assert not slow, slow
