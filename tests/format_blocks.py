"""Blocks of members as docs/formats/journal.md draws them, for tests/format_reader.py."""

import struct

BLOCK = 4096
HEADER = 64
PAYLOAD = BLOCK - HEADER
# Blocks of data that the records of one journal block can speak of at most.
DATA_BLOCKS_MAX = (PAYLOAD - 16) // 4
SUPERBLOCK, PAGE, JOURNAL, INTENT, TABLE, MEMBERSHIP = 1, 2, 3, 4, 5, 6


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def uuid(data):
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Bad(Exception):
    """A block that does not count, and why."""


class Member:
    """A file of blocks, or some blocks of one."""

    def __init__(self, path, first=0, blocks=None):
        self.file = open(path, "rb")
        self.file.seek(0, 2)
        self.first = first
        self.blocks = self.file.tell() // BLOCK if blocks is None else blocks

    def block(self, address):
        self.file.seek((self.first + address) * BLOCK)
        data = self.file.read(BLOCK)
        if len(data) < BLOCK:
            raise Bad("past the end")
        return data


def unseal(data, kind, address, member=None):
    """The header and payload of a sealed block."""
    magic, checksum, version, found, length = struct.unpack_from("<4sIHHI", data)
    owner = data[16:32]
    place, generation, sequence, mark = struct.unpack_from("<QQQQ", data, 32)
    if magic != b"ImBx":
        raise Bad("magic")
    if checksum != crc32c(data[:4] + bytes(4) + data[8:]):
        raise Bad("checksum")
    if version != 1:
        raise Bad("version")
    if found != kind:
        raise Bad("kind")
    if member is not None and owner != member:
        raise Bad("member")
    if place != address:
        raise Bad("address")
    if length > PAYLOAD:
        raise Bad("length")
    header = {"member": owner, "generation": generation, "sequence": sequence, "mark": mark}
    return header, data[HEADER:HEADER + length]
