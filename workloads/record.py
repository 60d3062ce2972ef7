#!/usr/bin/env python3
"""Records what real software asks of a disk: ext4 on an Imbrex device, a workload on top.

    sudo workloads/record.py pgbench pgbench.imbrex --seconds 600

Two passes: the first serves without recording, makes the file system, scatters its free space and
loads the data; the second serves with `--record` and runs the workload with a cold page cache. The
workload lives in a memory control group of at most 512 MiB. `--rehearse` puts nbdkit in the place of
Imbrex, checks that this machine can do all of it, and counts the requests.
"""

import argparse
import contextlib
import pathlib
import re
import shutil
import sys
import tempfile
import time

from recording.command import RecordingError, need_root
from recording.device import Device
from recording.memory_limit import MemoryLimit
from recording.recipes import RECIPES
from recording.server import Imbrex, Rehearsal
from recording.used_file_system import scatter_free_space

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"MiB": 2**20, "GiB": 2**30}


def size(text):
    """`16GiB` and `512MiB`; anything else is an error, a bare number included."""
    match = re.fullmatch(r"(\d+)(MiB|GiB)", text)
    if match is None or match[1] == "0":
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 16GiB or 512MiB")
    return int(match[1]) * UNITS[match[2]]


def count(text):
    """A positive whole number."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above zero")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(
        description="Record a workload that runs on ext4 on an Imbrex device.",
        epilog="Workloads: " + "; ".join(f"{name}: {recipe.description}"
                                         for name, recipe in RECIPES.items()))
    parser.add_argument("workload", choices=RECIPES)
    parser.add_argument("out", type=pathlib.Path, help="the recording to write")
    parser.add_argument("--seconds", type=count, default=600, help="how long to record (600)")
    parser.add_argument("--device", type=size, default="16GiB", help="size of the device (16GiB)")
    parser.add_argument("--memory", type=size, default="512MiB",
                        help="memory of the workload with its page cache (512MiB, the most)")
    parser.add_argument("--scale", type=count, default=150,
                        help="pgbench: 100,000 accounts each, about 15 MiB (150)")
    parser.add_argument("--rows", type=count,
                        help="rows in each table, about 250 bytes a row: sysbench, 8 tables (1000000), "
                             "sysbench-oltp, 1 table (4000000)")
    parser.add_argument("--warehouses", type=count, default=5,
                        help="tpcc: about 110 MB and 10 clients each (5)")
    parser.add_argument("--files", type=count,
                        help="files in the pool: file-churn, 32 KiB on average (60000), "
                             "postmark, 5 KiB (20000)")
    parser.add_argument("--transactions", type=count, default=100_000,
                        help="sysbench-oltp and postmark: end after so many, if that is before --seconds (100000)")
    parser.add_argument("--seed", type=count, default=1)
    parser.add_argument("--stack", default="cmr-only",
                        help="the stack to serve; the recording is taken above it (cmr-only)")
    parser.add_argument("--binary", type=pathlib.Path,
                        default=REPOSITORY / "target" / "release" / "imbrex")
    parser.add_argument("--scratch", type=pathlib.Path,
                        help="where the image goes while recording; not a tmpfs if memory is short")
    parser.add_argument("--rehearse", action="store_true",
                        help="use nbdkit instead of Imbrex and count the requests; "
                             "OUT receives nbdkit's log")
    return parser.parse_args()


def record(options, scratch):
    out = options.out.resolve()
    if out.exists():
        raise RecordingError(f"{out} exists: a recording is never overwritten")
    if not out.parent.is_dir():
        raise RecordingError(f"{out.parent} is not a directory")
    # Undone in reverse order whatever fails: nothing stays mounted and no process stays behind.
    with contextlib.ExitStack() as undo:
        limit = MemoryLimit(options.memory)
        undo.callback(limit.remove)
        if options.rehearse:
            server = Rehearsal(scratch, options.device)
        else:
            server = Imbrex(scratch, options.binary, options.stack, options.device)
        device = Device(scratch, server)
        undo.callback(device.detach)
        recipe = RECIPES[options.workload](options, device.root, scratch, limit)
        undo.callback(recipe.abandon)

        say = Stopwatch()
        say("making the file system")
        device.prepare()
        kept = scatter_free_space(device.root, options.seed)
        say(f"free space scattered between {kept} files; preparing: {recipe.description}")
        recipe.prepare()
        device.detach()
        say(f"recording for {options.seconds} s")
        device.record(out)
        result = recipe.run(options.seconds)
        device.detach()
        say(result)
        print(server.summary(out))


class Stopwatch:
    """Progress on stderr, with the time since the start."""

    def __init__(self):
        self.started = time.monotonic()

    def __call__(self, text):
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    scratch = None
    try:
        need_root()
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="imbrex-recording-", dir=options.scratch))
        record(options, scratch)
    except RecordingError as error:
        print(f"record.py: {error}", file=sys.stderr)
        return 1
    finally:
        if scratch is not None:
            # A directory that is still mounted must not be emptied through its mount point.
            if not (scratch / "fs").is_mount():
                shutil.rmtree(scratch, ignore_errors=True)
            else:
                print(f"record.py: {scratch} is still mounted and was left", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
