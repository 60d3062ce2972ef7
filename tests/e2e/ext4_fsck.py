#!/usr/bin/env python3
"""ext4 on a served stack of each system: files written, unmounted, the server restarted, `e2fsck -f` clean, and the
files as they were."""

import hashlib
import pathlib
import random
import subprocess
import sys

from _serving import IMBREX, SCRATCH, need, need_mount

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "workloads"))
from recording.device import Device
from recording.server import Imbrex

need("nbdfuse", "fusermount3", "mkfs.ext4", "e2fsck", "losetup")
need_mount()
DEVICE_BYTES = 2 << 30
FILES = 400


def play(stack):
    rng = random.Random(1)
    server = Imbrex(SCRATCH / stack, IMBREX, stack, DEVICE_BYTES)
    device = Device(SCRATCH / stack, server)
    hashes = {}
    try:
        device.prepare()
        for number in range(FILES):
            contents = rng.randbytes(rng.randint(1, 2 << 20))
            path = device.root / f"{number % 7}" / f"{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
            hashes[path] = hashlib.sha256(contents).digest()
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


for stack in ("pore", "hwsr", "s-block"):
    (SCRATCH / stack).mkdir()
    play(stack)
