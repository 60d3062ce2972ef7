#!/usr/bin/env python3
"""The recipes of docs/serving.md, typed as they stand there. Recipes below the headings of LEFT_OUT need what a test does
not have."""

import os

import _recipes
from _serving import need

LEFT_OUT = {
    "On real disks": "block devices to spare",
    "As root": "the kernel module of NBD",
    "In a virtual machine": "a virtual machine",
    "Under systemd": "a machine that systemd has started; systemd_units.py plays it",
}

os.environ["PATH"] += ":/usr/sbin:/sbin"
need("nbdinfo", "nbdcopy", "nbdkit", "qemu-img", "qemu-io", "fio", "nbdfuse", "fusermount3", "mkfs.ext4", "e2fsck", "python3")
if not os.access("/dev/fuse", os.W_OK):
    print("skipped: nbdfuse needs /dev/fuse")
    raise SystemExit(77)

_recipes.prepare()
(_recipes.FOLDER / "data.bin").write_bytes(os.urandom(1 << 20) * 16)
_recipes.play("serving.md", LEFT_OUT, 20)
