#!/usr/bin/env python3
"""Reads both copies of the label at the end of a file or block device of a disk, from docs/formats/label.md alone, and
prints them as JSON; null for a copy that is not whole."""

import json
import os
import struct
import sys

from format_blocks import BLOCK, crc32c, uuid


def label(path):
    """Both copies of the label at the end of a file or block device."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END) // BLOCK * BLOCK
        copies = []
        for copy in range(2):
            at = end - (2 - copy) * BLOCK
            file.seek(at)
            data = file.read(BLOCK)
            magic, checksum, version, kind, length = struct.unpack_from("<4sIHHI", data)
            whole = data[:4] + bytes(4) + data[8:]
            if magic != b"ImBx" or checksum != crc32c(whole) or version != 1 or kind != 7:
                copies.append(None)
                continue
            address, count, index, random = struct.unpack_from("<4Q", data, 32)
            if address != at // BLOCK or index != copy:
                copies.append(None)
                continue
            required, disk, entries, marks, came_from = struct.unpack_from("<I4H", data, 72)
            if required:
                raise SystemExit("features")
            table = [list(struct.unpack_from("<II", data, 96 + 6 * entries + 8 * mark)) for mark in range(marks)]
            pick = lambda mark: None if mark == 65535 else table[mark]
            listed = [struct.unpack_from("<3H", data, 96 + 6 * entry) for entry in range(entries)]
            server, = struct.unpack_from("<Q", data, 84)
            copies.append({"set": uuid(data[16:32]), "disk": disk, "server": server, "mark": [count, random], "from": pick(came_from),
                           "entries": [{"disk": number, "last": pick(last), "before": pick(before)}
                                       for number, last, before in listed]})
    return copies


if __name__ == "__main__":
    print(json.dumps(label(sys.argv[1]), indent=1, sort_keys=True))
