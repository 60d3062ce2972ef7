#!/usr/bin/env python3
"""A client that tries to connect from before the socket exists is greeted, however early it gets through: while
the layers of the server still come up, or later. Every second start follows a kill -9, so that it recovers, and every
second pair of starts is over TCP. 12 starts, $IMBREX_STARTS if that is set, or 200 under IMBREX_SOAK=1."""

import os
import random
import signal
import socket
import subprocess
import threading
import time

from _nbd import Client
from _serving import IMBREX, SCRATCH, STOP_TIMEOUT_S, create

STARTS = int(os.environ.get("IMBREX_STARTS") or (200 if os.environ.get("IMBREX_SOAK") == "1" else 12))
PATIENCE_S = 30
GREETING = b"NBDMAGICIHAVEOPT"
# Below the ports that the system gives to clients: a client that connects to a port nobody listens on could get
# that port itself and reach itself.
PORTS = range(20_000, 30_000)


class EarlyClient(threading.Thread):
    """Connects as soon as it can and waits for the greeting."""

    def __init__(self, family, address):
        super().__init__()
        self.family, self.address = family, address
        self.connected_s = self.greeted_s = None
        self.start()

    def run(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with socket.socket(self.family) as client:
                try:
                    client.connect(self.address)
                except OSError:
                    continue
                self.connected_s = time.monotonic()
                client.settimeout(PATIENCE_S)
                try:
                    greeting = client.recv(18, socket.MSG_WAITALL)
                except OSError:
                    return
                if greeting.startswith(GREETING):
                    self.greeted_s = time.monotonic()
                return


def free_port():
    """A port that nobody listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def end(server, kill):
    """Ends a server as `kill -9` does or in order."""
    server.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    _, said = server.communicate(timeout=STOP_TIMEOUT_S)
    assert kill or server.returncode == 0, f"the server ended with {server.returncode}: {said}"
    return said


data = create("pore", "1GiB", "cache.capacity=24MiB", "translation.persistent_cache=16MiB")
path = SCRATCH / "nbd.sock"
starts, hung, early = {}, {}, 0
killed = False
for number in range(STARTS):
    over_tcp = number // 2 % 2 == 1
    if over_tcp:
        port = free_port()
        client = EarlyClient(socket.AF_INET, ("127.0.0.1", port))
        where = ["--listen", f"127.0.0.1:{port}"]
    else:
        client = EarlyClient(socket.AF_UNIX, str(path))
        where = ["--socket", path]
    kind = ("after kill -9" if killed else "clean") + (", TCP" if over_tcp else ", Unix")
    server = subprocess.Popen([IMBREX, "serve", "pore", "--data", data, *where], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    client.join()
    assert client.connected_s is not None, f"nobody listens: {end(server, True)}"
    starts[kind] = starts.get(kind, 0) + 1
    if client.greeted_s is None:
        hung[kind] = hung.get(kind, 0) + 1
    else:
        # What it waited for are the layers.
        early += client.greeted_s - client.connected_s > 0.001
    if not over_tcp:
        # So that the next start has something to recover.
        writer = Client(path)
        for block in range(64):
            writer.write(random.randrange(writer.size // 4096) * 4096, bytes([block]) * 4096)
    killed = number % 2 == 0
    said = end(server, killed)
    assert ("recovered in" in said) == kind.startswith("after"), said

for kind, count in sorted(starts.items()):
    print(f"{kind}: {count} starts, {hung.get(kind, 0)} clients were not greeted within {PATIENCE_S} s")
print(f"{early} of {STARTS} clients were connected a millisecond and more before they were greeted")
assert not hung, f"clients were not greeted: {hung}"
