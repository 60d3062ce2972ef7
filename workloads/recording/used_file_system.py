"""Makes a fresh file system look used, so that new files lie scattered over the whole device."""

import os
import random

MIB = 1 << 20
SIZE_MIN_MIB = 1
SIZE_MAX_MIB = 64
FILES_PER_DIRECTORY = 32


def scatter_free_space(root, seed, fill_share=0.9, delete_share=0.55):
    """Allocates files until `fill_share` of the free space is taken, then deletes a random part.

    Sizes are log-uniform from 1 to 64 MiB. The space is allocated, not written: what matters is
    where later files find room. Returns the number of files kept.
    """
    rng = random.Random(seed)
    filler = root / "filler"
    filler.mkdir()
    state = os.statvfs(root)
    to_fill = int(state.f_bavail * state.f_frsize * fill_share)
    paths = []
    while to_fill > 0:
        if len(paths) % FILES_PER_DIRECTORY == 0:
            directory = filler / f"{len(paths) // FILES_PER_DIRECTORY:04}"
            directory.mkdir()
        size = int(SIZE_MIN_MIB * (SIZE_MAX_MIB / SIZE_MIN_MIB) ** rng.random() * MIB)
        path = directory / f"{len(paths):06}"
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        paths.append(path)
        to_fill -= size
    deleted = rng.sample(paths, int(len(paths) * delete_share))
    for path in deleted:
        path.unlink()
    return len(paths) - len(deleted)
