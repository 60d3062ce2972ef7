#!/usr/bin/env python3
"""A 4 GiB image copied into a served stack with nbdcopy comes out the same after a restart."""

import hashlib
import random
import subprocess

from _serving import SCRATCH, Serving, create, need

need("nbdcopy")
CHUNK_BYTES = 16 << 20
CHUNKS = 256

# Incompressible data that never repeats within the image: one random string, rotated for each chunk.
pattern = random.Random(1).randbytes(CHUNK_BYTES)
image = SCRATCH / "image"
written = hashlib.sha256()
with open(image, "wb") as file:
    for index in range(CHUNKS):
        cut = index * 4099
        chunk = pattern[cut:] + pattern[:cut]
        file.write(chunk)
        written.update(chunk)

data = create("pore", "4GiB")
with Serving("pore", data) as server:
    subprocess.run(["nbdcopy", "--flush", image, server.uri], check=True)
image.unlink()

with Serving("pore", data) as server:
    copy = subprocess.Popen(["nbdcopy", server.uri, "-"], stdout=subprocess.PIPE)
    read = hashlib.sha256()
    while chunk := copy.stdout.read(CHUNK_BYTES):
        read.update(chunk)
    assert copy.wait() == 0, "nbdcopy could not read the export"
assert read.hexdigest() == written.hexdigest(), "the image that came out is another one"
