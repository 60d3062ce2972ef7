#!/usr/bin/env python3
"""ext4 on a served stack of each system: files written, unmounted, the server restarted, `e2fsck -f` clean, and the
files as they were. A member of an array fails and is replaced and rebuilt while files are written."""

import hashlib
import pathlib
import random
import subprocess
import sys

from _array import check_image, stack_file
from _serving import IMBREX, SCRATCH, need, need_mount

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "workloads"))
from recording.device import Device
from recording.server import Imbrex

need("nbdfuse", "fusermount3", "mkfs.ext4", "e2fsck", "losetup")
need_mount()
FILES = 400
# The members of arrays that fail.
LOST = {"raid1": "disk-1", "raid4smr": "home-1"}


def replace_member(server, lost):
    """Has a member fail and another file take its place. Answers the rebuild, which goes on."""
    def command(*words):
        return [IMBREX, "control", f"{server.socket}.control", *words]

    subprocess.run(command(lost, "fail"), check=True, stdout=subprocess.DEVNULL, timeout=60)
    subprocess.run(command(lost, "replace"), check=True, stdout=subprocess.DEVNULL, timeout=60)
    return subprocess.Popen(command("array", "rebuild"), stdout=subprocess.DEVNULL)


def play(name, stack, device_bytes):
    rng = random.Random(1)
    folder = SCRATCH / name
    folder.mkdir()
    server = Imbrex(folder, IMBREX, stack, device_bytes)
    device = Device(folder, server)
    hashes = {}
    try:
        device.prepare()
        rebuild = None
        for number in range(FILES):
            if name in LOST and number == FILES // 3:
                rebuild = replace_member(server, LOST[name])
            contents = rng.randbytes(rng.randint(1, 2 << 20))
            path = device.root / f"{number % 7}" / f"{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
            hashes[path] = hashlib.sha256(contents).digest()
        if rebuild:
            assert rebuild.wait(timeout=300) == 0, "the rebuild has failed"
        for path in rng.sample(sorted(hashes), FILES // 3):
            path.unlink()
            del hashes[path]
        device.detach()

        server.prepare()
        device.attach()
        checked = subprocess.run(["e2fsck", "-f", "-n", device.loop], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
        assert checked.returncode == 0, checked.stdout
        device.mount()
        for path, digest in hashes.items():
            assert hashlib.sha256(path.read_bytes()).digest() == digest, f"{path} has changed"
    finally:
        device.detach()
    if name in LOST:
        check_image(server.data)


for stack in ("pore", "hwsr", "s-block"):
    play(stack, stack, 2 << 30)
play("raid1", stack_file("mirror", 2), 1 << 30)
play("raid4smr", "raid4smr", 1 << 30)
