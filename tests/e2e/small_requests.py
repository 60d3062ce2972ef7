#!/usr/bin/env python3
"""Requests for parts of blocks, by clients that ask which are allowed: fio with 512 bytes, qemu-io at odd offsets, the tools
of ext4 and, where they are installed, of XFS over nbdfuse. On the whole device and on a part of a span; a new start, and all of
it is still there."""

import os
import shutil
import subprocess
import time

from _kill import bounded
from _serving import SCRATCH, Serving, create, need

need("fio", "qemu-io", "timeout", "nbdinfo")
TIMEOUT_S = 300
KIB, BLOCK = 1 << 10, 4096
# A span of two parts of a disk, each an export of its own.
PARTS = SCRATCH / "parts.toml"
PARTS.write_text("""name = "parts"
[[node]]
name = "disk"
kind = "disk"
drive = "cmr-500gb-7200"
""" + "".join(f"""[[node]]
name = "{name}"
kind = "slice"
below = "disk"
offset = "{offset} GiB"
size = "1 GiB"
""" for name, offset in (("left", 0), ("right", 1))) + """[[node]]
name = "both"
kind = "span"
below = ["left", "right"]
""", encoding="utf-8")
# Where the tests of one device work, without meeting one another.
FIO_BYTES, QEMU_BYTES = 32 << 20, 64 << 20


def run(*command):
    status, said = bounded([str(word) for word in command], TIMEOUT_S)
    assert status == "0", f"{command}: exit status {status}: {said}"
    return said


def announced(uri):
    said = run("nbdinfo", "--json", uri)
    for line in '"block_size_minimum": 1', '"block_size_preferred": 4096', '"block_size_maximum": 33554432':
        assert line in said, f"{line} is missing in {said}"


def fio(uri, *options):
    for name, sizes in ("sectors", ["--bs=512"]), ("mixed", ["--bsrange=512-20k", "--blockalign=512"]):
        offset = 0 if name == "sectors" else FIO_BYTES // 2
        run("fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", *sizes, f"--offset={offset}",
            f"--size={FIO_BYTES // 2}", "--io_size=4m", "--iodepth=32", "--fsync=100", "--verify=crc32c", "--verify_fatal=1",
            "--randseed=8", *options)


class Model:
    """What the device must hold, beside the commands for qemu-io that make it so."""

    def __init__(self):
        self.bytes = bytearray(256 * KIB)
        self.commands = []

    def at(self, offset):
        return QEMU_BYTES + offset

    def write(self, value, offset, length, options=""):
        self.commands.append(f"write {options} -P {value} {self.at(offset)} {length}")
        self.bytes[offset:offset + length] = bytes([value]) * length

    def zero(self, offset, length, options=""):
        self.commands.append(f"write -z {options} {self.at(offset)} {length}")
        self.bytes[offset:offset + length] = bytes(length)

    def trim(self, offset, length):
        """Only whole blocks are given up; here they read as zeroes then."""
        self.commands.append(f"discard {self.at(offset)} {length}")
        first, end = -(-offset // BLOCK) * BLOCK, (offset + length) // BLOCK * BLOCK
        if first < end:
            self.bytes[first:end] = bytes(end - first)

    def reads(self):
        """Commands that read every run of equal bytes and compare it."""
        start = 0
        for end in range(1, len(self.bytes) + 1):
            if end == len(self.bytes) or self.bytes[end] != self.bytes[start]:
                yield f"read -P {self.bytes[start]} {self.at(start)} {end - start}"
                start = end

    def play(self, uri, commands):
        options = [word for command in commands for word in ("-c", command)]
        said = run("qemu-io", "-f", "raw", "-d", "unmap", *options, uri)
        assert "failed" not in said, said


def odd_requests():
    model = Model()
    model.write(1, 0, 256 * KIB)
    model.write(2, 511, 1)
    model.write(3, 4095, 2, "-f")
    model.write(4, 8191, 12_291)
    model.zero(30_001, 17)
    model.zero(40_959, 8_194, "-f")
    model.zero(65_535, 20_001, "-u")
    model.write(5, 70_000, 100)
    model.trim(100_001, 4_000)
    model.trim(110_001, 20_000)
    model.trim(140_000, 1)
    model.write(6, 150_001, 33)
    model.trim(149_000, 12_000)
    return model


class Exported:
    """The export as a file."""

    def __init__(self, uri):
        self.file = SCRATCH / "fuse" / "disk"
        self.file.parent.mkdir(exist_ok=True)
        self.process = subprocess.Popen(["nbdfuse", str(self.file), uri])
        deadline = time.monotonic() + 30
        while not self.file.exists():
            assert time.monotonic() < deadline and self.process.poll() is None, "nbdfuse does not show the export"
            time.sleep(0.05)

    def __enter__(self):
        return self.file

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", self.file.parent], check=True)
        self.process.wait(timeout=60)


def tool(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def file_systems(uri):
    """What could not be tried, and why."""
    if not os.path.exists("/dev/fuse") or not os.access("/dev/fuse", os.W_OK) or not tool("nbdfuse") or not tool("fusermount3"):
        return "ext4 and XFS: nbdfuse needs /dev/fuse"
    with Exported(uri) as file:
        run(tool("mkfs.ext4"), "-q", "-F", "-b", "1024", file)
        run(tool("e2fsck"), "-f", "-n", file)
        run(tool("mkfs.ext4"), "-q", "-F", file)
        contents = SCRATCH / "contents"
        contents.write_bytes(bytes(range(256)) * 1001)
        run(tool("debugfs"), "-w", "-R", f"write {contents} kept", file)
    with Exported(uri) as file:
        run(tool("e2fsck"), "-f", "-n", file)
        back = SCRATCH / "back"
        run(tool("debugfs"), "-R", f"dump kept {back}", file)
        assert back.read_bytes() == contents.read_bytes(), "a file has changed"
        if not tool("mkfs.xfs") or not tool("xfs_repair"):
            return "XFS: mkfs.xfs is not installed"
        run(tool("mkfs.xfs"), "-q", "-f", "-b", "size=1024", file)
        run(tool("xfs_repair"), "-n", "-f", file)
    return None


skipped = None
for stack, export, size in ("pore", "", "4GiB"), ("s-block", "", "4GiB"), (PARTS, "right", "2GiB"):
    folder = create(stack, size)
    model = odd_requests()
    with Serving(stack, folder) as server:
        uri = server.uri.replace("///", f"///{export}")
        announced(uri)
        fio(uri, "--do_verify=1")
        model.play(uri, model.commands)
        model.play(uri, model.reads())
    with Serving(stack, folder) as server:
        fio(uri, "--verify_only=1")
        model.play(uri, model.reads())
        skipped = file_systems(uri)
    print(f"{stack}: fine")
if skipped:
    print(f"not tried: {skipped}")
