#!/usr/bin/env python3
"""A mirror of a file and a disk at another server, which answers late (nbdkit with a delay) and then not at all. Service
goes on, the hang is a loss after `lost_after_s`, and when the disk is there again it gets what it has missed: of
sequential writes at most twice what was written."""
# Alone: it measures how long requests take.

import random
import signal
import subprocess
import time

from _array import Array, check_image, stack_file
from _nbd import Client
from _serving import SCRATCH, create, need

need("nbdkit")
SIZE = 128 << 20
CHUNK = 1 << 20
LOST_AFTER_S = 3
DELAY_MS = 100
WRITTEN_CHUNKS = 48
FAR = SCRATCH / "far.sock"


def far_server(*filters):
    """nbdkit over the file of the far disk."""
    FAR.unlink(missing_ok=True)
    process = subprocess.Popen(["nbdkit", "--foreground", "--unix", FAR, *filters[:1], "file", SCRATCH / "far.img", *filters[1:]])
    deadline = time.monotonic() + 10
    while not FAR.exists():
        assert time.monotonic() < deadline, "nbdkit does not start"
        time.sleep(0.01)
    return process


def timed(request):
    began = time.monotonic()
    request()
    return time.monotonic() - began


def main():
    for name in ["far", "near"]:
        with open(SCRATCH / f"{name}.img", "wb") as file:
            file.truncate(SIZE + (32 << 20))
    far = far_server()
    uri = f"nbd+unix:///?socket={FAR}"
    stack = stack_file("slow", 2, backing={"disk-0": SCRATCH / "near.img", "disk-1": uri}, lost_after_s=LOST_AFTER_S)
    data = create(stack, f"{SIZE >> 20}MiB")
    rng = random.Random(5)
    known = bytearray(SIZE)

    def write(client, offset, length):
        block = rng.randbytes(length)
        known[offset:offset + length] = block
        client.write(offset, block)

    far.kill()
    far.wait()
    far = far_server("--filter=delay", f"delay-write={DELAY_MS}ms", f"delay-read={DELAY_MS}ms")
    server = Array(stack, data)
    try:
        with server:
            client = Client(server.socket)
            slow = [timed(lambda: write(client, rng.randrange(SIZE >> 12) << 12, 4096)) for _ in range(20)]
            assert max(slow) < LOST_AFTER_S and min(slow) >= DELAY_MS / 1000, slow
            assert "array: whole" in server.control("array", "status")
            client.flush()
            far.send_signal(signal.SIGSTOP)
            hung = timed(lambda: write(client, 0, 4096))
            assert LOST_AFTER_S - 1 < hung < LOST_AFTER_S + 3, f"a request took {hung:.1f} s"
            assert "array: degraded" in server.control("array", "status")
            for chunk in range(WRITTEN_CHUNKS):
                write(client, chunk * CHUNK, CHUNK)
            client.flush()
            client.close()
        far.send_signal(signal.SIGCONT)
        far.kill()
        far.wait()
        far = far_server()
        server = Array(stack, data)
        with server:
            server.wait_until_whole()
            client = Client(server.socket)
            for offset in range(0, SIZE, CHUNK):
                assert client.read(offset, CHUNK) == known[offset:offset + CHUNK], f"at {offset}"
            client.close()
        copied = server.run_report()["nodes"]["array"]["rebuilt_blocks"] * 4096
        written = WRITTEN_CHUNKS * CHUNK
        assert 0 < copied <= 2 * written, f"{copied} bytes were copied for {written}"
    finally:
        far.kill()
    check_image_while_served(data)
    print(f"late by {DELAY_MS} ms: {min(slow):.2f} to {max(slow):.2f} s a write; the hang cost {hung:.1f} s; "
          f"{copied >> 20} MiB were copied for {written >> 20} MiB of sequential writes")


def check_image_while_served(data):
    far = far_server()
    try:
        check_image(data)
    finally:
        far.kill()


main()
