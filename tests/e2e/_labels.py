"""Labels of images: what they say, and images as a build without labels makes them."""

import json
import os
import pathlib
import struct
import subprocess
import sys

TESTS = pathlib.Path(__file__).parent.parent
sys.path.append(str(TESTS))
from format_blocks import crc32c  # noqa: E402, which lies beside this folder

BLOCK = 4096
LABEL = 2 * BLOCK


def version_of(data):
    return struct.unpack_from("<I", (data / "image").read_bytes(), 8)[0]


def without_labels(data):
    """Makes an image of version 3 of one of version 4, as a build without labels would have made it."""
    image = (data / "image").read_bytes()
    assert struct.unpack_from("<I", image, 8) == (4,), "the image has another version"
    body = image[64:]
    listed = read_image(data / "image")["image"]["labels"]
    body = body[:len(body) - 4 - sum(6 + len(disk["node"]) for disk in listed)]
    header = image[:8] + struct.pack("<I", 3) + image[12:48] + struct.pack("<QI", len(body), crc32c(body))
    (data / "image").write_bytes(header + struct.pack("<I", crc32c(header)) + body)
    for disk in sorted(data.glob("*.img")):
        os.truncate(disk, disk.stat().st_size - LABEL)


def read_image(path):
    """The description of an image, by the second reader."""
    done = subprocess.run([sys.executable, TESTS / "format_reader.py", "image", path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def read_label(path):
    """Both copies of the label at the end of a file, by the second reader."""
    done = subprocess.run([sys.executable, TESTS / "format_label.py", path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_labels(disks):
    """Both copies of every label say that all these disks were in at one mark, which both have."""
    found = [read_label(disk) for disk in disks]
    marks = {tuple(copy["mark"]) for label in found for copy in label}
    assert len(marks) == 1, f"{disks}: {found}"
    for label in found:
        for copy in label:
            assert {entry["disk"] for entry in copy["entries"]} == {label[0]["disk"] for label in found}
            assert all(tuple(entry["last"]) in marks for entry in copy["entries"])
        assert all(entry["before"] is None for entry in label[1]["entries"])


def state(data):
    """When each file was written last: the files are too large to be read."""
    return {path.name: path.stat().st_mtime_ns for path in [*data.glob("*.img"), data / "image"]}
