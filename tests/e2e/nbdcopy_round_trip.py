#!/usr/bin/env python3
"""A 1 GiB disk image, data between holes as images are, copied into a served PORE stack with nbdcopy comes
out the same after a restart. 4 GiB under IMBREX_SOAK=1."""

import hashlib
import os
import random
import subprocess

from _serving import SCRATCH, Serving, create, need

need("nbdcopy")
IMAGE_GIB = 4 if os.environ.get("IMBREX_SOAK") == "1" else 1
IMAGE_BYTES = IMAGE_GIB << 30
CHUNK_BYTES = 4 << 20
# One chunk in so many holds data: enough to go through cache, log and bands many times over.
DATA_EVERY = 8

# Incompressible data that never repeats within the image: one random string, rotated for each chunk.
pattern = random.Random(1).randbytes(CHUNK_BYTES)
image = SCRATCH / "image"
written = hashlib.sha256()
hole = bytes(CHUNK_BYTES)
with open(image, "wb") as file:
    file.truncate(IMAGE_BYTES)
    for index in range(IMAGE_BYTES // CHUNK_BYTES):
        chunk = hole
        if index % DATA_EVERY == 0:
            cut = index * 4099 % CHUNK_BYTES
            chunk = pattern[cut:] + pattern[:cut]
            file.seek(index * CHUNK_BYTES)
            file.write(chunk)
        written.update(chunk)

data = create("pore", f"{IMAGE_GIB}GiB")
with Serving("pore", data) as server:
    subprocess.run(["nbdcopy", "--flush", image, server.uri], check=True)
run = server.run_report()
assert run["bands_rewritten"] > 0, f"no band was rewritten: {run}"
image.unlink()

with Serving("pore", data) as server:
    copy = subprocess.Popen(["nbdcopy", server.uri, "-"], stdout=subprocess.PIPE)
    read = hashlib.sha256()
    while chunk := copy.stdout.read(CHUNK_BYTES):
        read.update(chunk)
    assert copy.wait() == 0, "nbdcopy could not read the export"
assert read.hexdigest() == written.hexdigest(), "the image that came out is another one"
