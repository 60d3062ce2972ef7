#!/usr/bin/env python3
"""Images as fixtures: the files of one whose server was killed, in one compressed file without the holes.

    _image_fixtures.py PROGRAM FILE        makes such an image with a program, and packs it into FILE

For each file: u32 length of the name, the name, u64 length of the file, u32 number of the parts that are not holes, and for
each part u64 offset, u64 length, the bytes. Only a program that makes another version of the format has a fixture to write."""

import errno
import lzma
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

BLOCK = 4096
STACK = "pore"
SETTINGS = ("cache.capacity=2MiB", "cache.zone=2MiB", "translation.bands=uniform:1MiB..3MiB",
            "translation.persistent_cache=1MiB")
# What is written: every one of these blocks, then the first ones again.
BLOCKS, BLOCKS_AGAIN = 1024, 64


def parts_of(path):
    """The parts of a file that are not holes: offset and bytes. Zeroes between them are left out too."""
    with open(path, "rb") as file:
        offset = 0
        while True:
            try:
                start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return
            offset = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            file.seek(start)
            data = file.read(offset - start)
            for at in range(0, len(data), BLOCK):
                if any(data[at:at + BLOCK]):
                    yield start + at, data[at:at + BLOCK]


def pack(data, target):
    packed = bytearray()
    for path in sorted(data.iterdir()):
        parts, name = list(parts_of(path)), path.name.encode()
        packed += struct.pack("<I", len(name)) + name + struct.pack("<QI", path.stat().st_size, len(parts))
        for offset, part in parts:
            packed += struct.pack("<QQ", offset, len(part)) + part
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(lzma.compress(packed, preset=9 | lzma.PRESET_EXTREME))


def unpack(source, data):
    """The folder of the image again."""
    data.mkdir()
    packed, at = lzma.decompress(source.read_bytes()), 0

    def take(count):
        nonlocal at
        at += count
        return packed[at - count:at]

    while at < len(packed):
        name = take(*struct.unpack("<I", take(4))).decode()
        length, parts = struct.unpack("<QI", take(12))
        with open(data / name, "wb") as file:
            file.truncate(length)
            for _ in range(parts):
                offset, count = struct.unpack("<QQ", take(16))
                file.seek(offset)
                file.write(take(count))
    return data


def fill_of(block):
    return block + 100 if block < BLOCKS_AGAIN else block % 251 + 1


def make(program, target):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(IMBREX=program, IMBREX_TMP=folder)
        from _kill import Killable
        from _nbd import Client
        data = pathlib.Path(folder) / "data"
        options = [word for setting in SETTINGS for word in ("--set", setting)]
        subprocess.run([program, "create", STACK, "--data", data, "--size", "64MiB", *options], check=True)
        with Killable(STACK, data) as server:
            client = Client(server.socket)
            for block in range(BLOCKS):
                client.write(block * BLOCK, bytes([block % 251 + 1]) * BLOCK)
            for block in range(BLOCKS_AGAIN):
                client.write(block * BLOCK, bytes([fill_of(block)]) * BLOCK)
            server.kill()
        pack(data, target)


if __name__ == "__main__":
    make(sys.argv[1], pathlib.Path(sys.argv[2]))
