#!/usr/bin/env python3
"""A bit flips on the disk of a segment layout. The block is an error: before and after a rewrite of its neighbour, and over a
restart. `imbrex check --data` finds it. It is right again once it is written. An image without checksums is told of."""

import subprocess

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

BLOCK = 4096
STACK = """
name = "segments-alone"

[[node]]
name = "disk"
kind = "disk"
drive = "wd1002faex"

[[node]]
name = "translation"
kind = "segments"
below = "disk"
"""
# A block, and one that comes before it in its segment of 2 MiB, so that its rewrite writes the block again.
FLIPPED, BESIDE = 300, 3


def content(lba, version=0):
    return (f"block {lba} version {version} ".encode() * 400)[:BLOCK]


def read(client, lba):
    """What a block holds; none where it cannot be read."""
    try:
        return client.read(lba * BLOCK, BLOCK)
    except OSError:
        return None


def check(data):
    done = subprocess.run([IMBREX, "check", data, "--data"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def flip(path, wanted):
    """Changes a bit of the one place that holds `wanted`, of the last of several: the first ones are in slots."""
    whole = path.read_bytes()
    at = whole.rfind(wanted)
    assert at >= 0 and at % BLOCK == 0, at
    with open(path, "r+b") as file:
        file.seek(at + 1000)
        file.write(bytes([whole[at + 1000] ^ 8]))


def with_checksums(stack):
    data = create(stack, "64MiB")
    with Killable(stack, data) as server:
        assert "keeps no checksums" not in server.said()
        client = Client(server.socket)
        for lba in range(512):
            client.write(lba * BLOCK, content(lba))
        client.close()
    assert check(data)[0] == 0, check(data)
    flip(data / "disk.img", content(FLIPPED))
    status, said = check(data)
    assert status == 4 and "does not match its checksum" in said, said
    for life in range(2):
        with Killable(stack, data) as server:
            client = Client(server.socket)
            assert read(client, FLIPPED) is None, f"life {life}"
            client.write(BESIDE * BLOCK, content(BESIDE, life + 1))
            assert read(client, BESIDE) == content(BESIDE, life + 1)
            assert read(client, FLIPPED) is None, f"life {life}, after a rewrite"
            for lba in range(512):
                version = life + 1 if lba == BESIDE else 0
                assert lba == FLIPPED or read(client, lba) == content(lba, version), lba
            client.close()
    with Killable(stack, data) as server:
        client = Client(server.socket)
        client.write(FLIPPED * BLOCK, content(FLIPPED, 1))
        assert read(client, FLIPPED) == content(FLIPPED, 1)
        client.close()
    assert check(data)[0] == 0, check(data)


def without_checksums(stack):
    setting = "translation.checksums=off"
    data = create(stack, "64MiB", setting)
    with Killable(stack, data, "--set", setting) as server:
        assert "node `translation` keeps no checksums" in server.said(), server.said()
    status, said = check(data)
    assert status == 0 and "no checksums" in said, said


def main():
    stack = SCRATCH / "segments-alone.toml"
    stack.write_text(STACK)
    with_checksums(stack)
    without_checksums(stack)


main()
