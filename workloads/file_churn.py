#!/usr/bin/env python3
"""Small-file churn in the manner of a mail or news server.

The shape follows the published description of Postmark (Katcher, Network Appliance TR3022, 1997): a
pool of small files in many directories; each transaction either reads a whole file or appends to
one, and either creates or deletes a file. The program and its defaults are our own. The sequence of
operations depends on the seed alone; only their times depend on the machine.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

SIZE_MIN_BYTES = 512
SIZE_MAX_BYTES = 64 * 1024
APPEND_MAX_BYTES = 8 * 1024
DIRECTORIES = 200
# Any file is a slice of one random string, so that no time goes into making contents.
CONTENTS_BYTES = 2 * SIZE_MAX_BYTES


class FilePool:
    """The files that exist, and the operations on them."""

    def __init__(self, root, seed, sync_every):
        self.root, self.sync_every = root, sync_every
        self.rng = random.Random(seed)
        self.contents = self.rng.randbytes(CONTENTS_BYTES)
        self.files = sorted(root.glob("*/*"))
        self.next_number = 1 + max((int(path.name) for path in self.files), default=-1)
        self.counts = dict.fromkeys(["created", "deleted", "read", "appended", "synced"], 0)

    def create(self):
        number = self.next_number
        self.next_number += 1
        path = self.root / f"{number % DIRECTORIES:03}" / f"{number:08}"
        size = self.rng.randint(SIZE_MIN_BYTES, SIZE_MAX_BYTES)
        start = self.rng.randrange(CONTENTS_BYTES - size)
        self._write(path, "wb", self.contents[start:start + size])
        self.files.append(path)
        self.counts["created"] += 1

    def delete(self):
        index = self.rng.randrange(len(self.files))
        self.files[index], self.files[-1] = self.files[-1], self.files[index]
        self.files.pop().unlink()
        self.counts["deleted"] += 1

    def read(self):
        self.rng.choice(self.files).read_bytes()
        self.counts["read"] += 1

    def append(self):
        size = self.rng.randint(1, APPEND_MAX_BYTES)
        self._write(self.rng.choice(self.files), "ab", self.contents[:size])
        self.counts["appended"] += 1

    def transaction(self, files_min):
        """One of read and append, then one of create and delete, each with equal chance."""
        (self.read if self.rng.random() < 0.5 else self.append)()
        # The number of files is a random walk; the floor keeps it from drifting to nothing.
        if self.rng.random() < 0.5 or len(self.files) <= files_min:
            self.create()
        else:
            self.delete()

    def _write(self, path, mode, data):
        with open(path, mode) as file:
            file.write(data)
            if self.sync_every and self.rng.randrange(self.sync_every) == 0:
                file.flush()
                os.fsync(file.fileno())
                self.counts["synced"] += 1


def prepare(root, files, seed):
    """Creates the directories and the pool of files."""
    for number in range(DIRECTORIES):
        (root / f"{number:03}").mkdir(parents=True)
    pool = FilePool(root, seed, sync_every=0)
    for _ in range(files):
        pool.create()
    return pool.counts


def churn(root, seed, sync_every, seconds, transactions):
    """Transactions on a prepared pool until the time or the number given is reached."""
    pool = FilePool(root, seed, sync_every)
    if not pool.files:
        raise SystemExit(f"{root} holds no files: run `prepare` first")
    files_min = len(pool.files) // 2
    deadline = None if seconds is None else time.monotonic() + seconds
    done = 0
    while (transactions is None or done < transactions) and \
            (deadline is None or time.monotonic() < deadline):
        pool.transaction(files_min)
        done += 1
    return {"transactions": done, **pool.counts}


def main():
    parser = argparse.ArgumentParser(description="Small-file churn in many directories.")
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("prepare", help="create the pool of files")
    first.add_argument("root", type=pathlib.Path)
    first.add_argument("--files", type=int, default=60_000)
    first.add_argument("--seed", type=int, default=1)
    second = commands.add_parser("run", help="transactions on the pool")
    second.add_argument("root", type=pathlib.Path)
    second.add_argument("--seed", type=int, default=1)
    second.add_argument("--sync-every", type=int, default=10,
                        help="one write in this many is followed by fsync; 0: none (default 10)")
    limit = second.add_mutually_exclusive_group(required=True)
    limit.add_argument("--seconds", type=float)
    limit.add_argument("--transactions", type=int)
    arguments = parser.parse_args()
    if arguments.command == "prepare":
        counts = prepare(arguments.root, arguments.files, arguments.seed)
    else:
        counts = churn(arguments.root, arguments.seed, arguments.sync_every, arguments.seconds,
                       arguments.transactions)
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
