#!/usr/bin/env python3
"""Images that the build before has made, of every ready-made stack and drive that `create` makes one of, with small caches
and as they come, and of stacks of other kinds: written to by that build, closed in order or killed while requests are in
flight, then served by this one. Every block that was answered is right, flushed or not; `check --data` finds nothing; the
disks get labels, which the second reader reads; the build before refuses the image then, and nothing has changed.

IMBREX_BEFORE is the program of that build: of any that makes images of version 3. IMBREX_IMAGES chooses by parts of names."""

import os
import random
import sys

from _images import Device, cases, make, run
from _labels import BLOCK, check_labels, read_image, state, version_of
from _nbd import Pipeline
from _serving import IMBREX, SCRATCH

BEFORE = os.environ.get("IMBREX_BEFORE")
if not BEFORE:
    print("skipped: IMBREX_BEFORE names no program of the build before, so no image of it was tried")
    sys.exit(77)

CHOSEN = os.environ.get("IMBREX_IMAGES", "").split(",")


def goes_over(stack, options, requests, kill, backing=None):
    """An image of the build before, from its creation to its second use by this one; None if there is no such image."""
    data = SCRATCH / "data"
    if not make(BEFORE, stack, data, options, backing):
        return None
    assert version_of(data) == 3, f"IMBREX_BEFORE makes images of version {version_of(data)}"
    disks = [*sorted(data.glob("*.img")), *([backing] if backing else [])]
    lengths = {disk: disk.stat().st_size for disk in disks}
    device = Device(stack, data, random.Random(f"{stack} {options} {kill}"))
    device.use(BEFORE, requests, kill)
    device.is_clean("of the build before")

    before = state(data)
    with device.serve(IMBREX, "--read-only") as server:
        device.check(Pipeline(server.socket), settle=False)
    assert state(data) == before and version_of(data) == 3, "read only"

    said = device.use(IMBREX, requests, kill)
    assert "its disks have labels from now on (format version 4)" in said, said
    assert ("was not closed in order: recovered in" in said) == kill, said
    sums_are_told = "keeps no checksums" in said
    assert version_of(data) == 4
    listed = read_image(data / "image")["image"]["labels"]
    assert len(listed) == len(disks) and all(disk["is_labelled"] for disk in listed), listed
    assert all(disk.stat().st_size == length + 2 * BLOCK for disk, length in lengths.items())
    check_labels(disks)
    device.is_clean("with labels")

    before = state(data)
    refused = run("timeout", "60", BEFORE, "serve", stack, "--data", data, "--socket", SCRATCH / "refused.sock")
    assert refused.returncode == 1 and "format version 4" in refused.stderr, refused
    assert state(data) == before, "the build before has written"

    said = device.use(IMBREX, requests, kill)
    assert "labels from now on" not in said, said
    device.is_clean("used again")
    device.use(IMBREX, 8, False)
    check_labels(disks)
    device.is_clean("closed")
    return sums_are_told


def main():
    count, without_sums, none = 0, set(), []
    for name, stack, options, requests, backing in cases(BEFORE):
        if not any(part in name for part in CHOSEN):
            continue
        for kill in (False, True):
            told = goes_over(stack, options, requests, kill, backing)
            if told is None:
                none.append(name)
                break
            if told:
                without_sums.add(name)
            count += 1
        else:
            print(f"{name}: closed and killed, served, labelled, whole", flush=True)
    assert count, "no image was made"
    assert all(name.split(",")[0] in ("hwsr", "s-block") for name in without_sums), without_sums
    print(f"{count} images of the build before served, labelled and whole; told that they keep no checksums: "
          f"{'; '.join(sorted(without_sums))}; no image: {', '.join(none)}")


main()
