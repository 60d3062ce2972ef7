#!/usr/bin/env python3
"""Labels of a disk that is not in the folder of its image: a file, and a loop device where there are any. One that `create`
plans for has its label at its end. One of an image without labels gets one where there is room; where it is full to its
end, or the two blocks behind the disk are not zero, it stays without, is served, is told of, and nothing is written there;
it gets one as soon as there is room."""

import contextlib
import os
import random
import shutil
import subprocess
import sys

from _kill import Killable
from _labels import BLOCK, LABEL, check_labels, read_image, version_of, without_labels
from _nbd import Client
from _serving import IMBREX, SCRATCH
from _stacks import stripe_with

# What the disk offers. No multiple of anything.
BLOCKS = 4099
DATA = SCRATCH / "data"
STACK = SCRATCH / "mine.toml"
# The name that the stack knows, and what is behind it.
ELSEWHERE, CONTENTS = SCRATCH / "elsewhere", SCRATCH / "contents"
TOLD = "imbrex: warning: node `there`: {path} has no label: {reason}; another disk or an older copy in its place goes unnoticed"
FULL = "it ends with the disk, and a label needs 8 KiB behind it"
USED = "the 8 KiB behind the disk, where a label would lie, are not zero"
NEW = "its disks have labels from now on (format version 4)"
# The same data and places each time, so that a failure can be played again.
RNG = random.Random(20)

STACK.write_text(f'name = "mine"\n{stripe_with(ELSEWHERE)}')


def attach():
    """A loop device over the contents; None where none can be had."""
    done = subprocess.run(["losetup", "--find", "--show", CONTENTS], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


@contextlib.contextmanager
def loop_device():
    device = attach()
    assert device, "a loop device that was there is gone"
    with open(device, "rb"):
        # One that is in use goes when the last one closes it: also when this test is killed.
        subprocess.run(["losetup", "--detach", device], check=True)
        yield device


@contextlib.contextmanager
def elsewhere(is_device, blocks, tail=b""):
    """The disk with that many blocks, the old ones as they were, and the last bytes; its path is the stack's."""
    os.truncate(CONTENTS, blocks * BLOCK)
    if tail:
        with open(CONTENTS, "r+b") as file:
            file.seek(-len(tail), os.SEEK_END)
            file.write(tail)
    with loop_device() if is_device else contextlib.nullcontext(CONTENTS) as device:
        ELSEWHERE.unlink(missing_ok=True)
        ELSEWHERE.symlink_to(device)
        yield


def end(count):
    with open(CONTENTS, "rb") as file:
        file.seek(BLOCKS * BLOCK)
        return file.read(count * BLOCK)


def use(known, kill):
    """Serves, compares what is known, writes and flushes, and ends; what the server has said."""
    with Killable(STACK, DATA) as server:
        client = Client(server.socket)
        for block, data in sorted(known.items()):
            assert client.read(block * BLOCK, BLOCK) == data, f"block {block}"
        blocks = client.size // BLOCK
        # The last ones too: the label lies right behind them.
        for block in [*(RNG.randrange(blocks) for _ in range(60)), blocks - 2, blocks - 1]:
            known[block] = RNG.randbytes(BLOCK)
            client.write(block * BLOCK, known[block])
        client.flush()
        said = server.said()
        if kill:
            server.kill()
    return said


def refused():
    command = [IMBREX, "serve", STACK, "--data", DATA, "--socket", SCRATCH / "refused.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("imbrex:") == 1, done.stderr
    return done.stderr


def is_clean(words=""):
    done = subprocess.run([IMBREX, "check", DATA], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "clean" and words in done.stdout, done.stdout


def labelled():
    return {disk["node"]: disk["is_labelled"] for disk in read_image(DATA / "image")["image"]["labels"]}


def create(is_device):
    shutil.rmtree(DATA, ignore_errors=True)
    CONTENTS.unlink(missing_ok=True)
    CONTENTS.touch()
    with elsewhere(is_device, BLOCKS + 2):
        subprocess.run([IMBREX, "create", STACK, "--data", DATA], check=True, stdout=subprocess.DEVNULL)
        known = {}
        use(known, False)
    return known


def planned(is_device):
    """A disk that `create` has made two blocks shorter than what it lies on."""
    known = create(is_device)
    old = SCRATCH / "old"
    shutil.copy(CONTENTS, old)
    with elsewhere(is_device, BLOCKS + 2):
        use(known, True)
        use(known, False)
        check_labels([DATA / "here.img", ELSEWHERE])
        is_clean()
    right = CONTENTS.read_bytes()
    for contents, words in ((old.read_bytes(), "it is an older copy of itself"),
                            (right[:-LABEL] + bytes(LABEL), "it has no label")):
        CONTENTS.write_bytes(contents)
        with elsewhere(is_device, BLOCKS + 2):
            said = refused()
            assert "node `there`" in said and words in said and str(ELSEWHERE) in said, said
        assert CONTENTS.read_bytes() == contents, "a refusal has written"
    CONTENTS.write_bytes(right)
    with elsewhere(is_device, BLOCKS + 2):
        use(known, False)


def goes_over(is_device, blocks, tail, reason, kill):
    """A disk of an image without labels which has that many blocks behind it, with those last bytes."""
    known = create(is_device)
    without_labels(DATA)
    os.truncate(CONTENTS, BLOCKS * BLOCK)
    told = TOLD.format(path=ELSEWHERE, reason=reason)
    with elsewhere(is_device, BLOCKS + blocks, tail):
        behind = end(3)
        for number in range(3):
            said = use(known, kill)
            assert (told in said) == bool(reason), said
            assert (NEW in said) == (number == 0), said
            assert version_of(DATA) == 4 and labelled() == {"here": True, "there": not reason}
            is_clean("it has no label" if reason else "")
    assert (end(3) == behind) == bool(reason), "what lies behind the disk"
    if not reason:
        return
    # Now there is room.
    os.truncate(CONTENTS, BLOCKS * BLOCK)
    with elsewhere(is_device, BLOCKS + 2):
        said = use(known, kill)
        assert "has no label" not in said and NEW in said, said
        assert labelled() == {"here": True, "there": True}
        use(known, False)
        check_labels([DATA / "here.img", ELSEWHERE])
        is_clean()
    os.truncate(CONTENTS, BLOCKS * BLOCK)
    with elsewhere(is_device, BLOCKS + 2):
        assert "it has no label" in refused()


def round_of(is_device):
    planned(is_device)
    one = b"\1"
    cases = [(2, b"", ""), (3, b"", ""), (2, one, USED), (2, one + bytes(LABEL - 1), USED), (3, one + bytes(BLOCK), USED)]
    # A file is made longer where a device ends.
    short = [(0, b"", FULL), (1, b"", FULL)] if is_device else [(0, b"", ""), (1, b"", ""), (1, one, USED)]
    for number, (blocks, tail, reason) in enumerate([*cases, *short]):
        goes_over(is_device, blocks, tail, reason, number % 2 == 0)
    return 1 + len(cases) + len(short)


print(f"a file: {round_of(False)} cases", flush=True)
CONTENTS.write_bytes(bytes(BLOCK))
found = attach() if os.geteuid() == 0 and shutil.which("losetup") else None
if not found:
    print("skipped: no loop device can be had, so labels on block devices were not tried")
    sys.exit(77)
subprocess.run(["losetup", "--detach", found], check=True)
print(f"a loop device: {round_of(True)} cases")
