#!/usr/bin/env python3
"""A member of a served array, of copies (`raid1`) or with parity (`raid4smr`), hangs, is far too slow, or fails its writes or
reads, under load and while one request at a time is made. With `lost_after_s = 5` no request takes longer than 7 s where a
member does not answer, and 2 s where it answers with errors. None fails, and every block is right then and after the next
start.

Where the test may, a member is also a block device that does hang, and not a fault that the server makes."""

# Alone: it measures how long requests take.

import concurrent.futures
import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time

from _array import Array, check_image, parity_stack_file, stack_file
from _load import BLOCK, Load, check, contents
from _nbd import Client
from _serving import SCRATCH, create

IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
LOST_AFTER_S = 5
SILENT_MAX_S, FAILING_MAX_S = 7, 2
# A device that hangs is let go after so long, whatever the server does.
HANG_MAX_S = 60
SIZE_MIB = 32
BLOCKS = (SIZE_MIB << 20) // BLOCK
# By the words of a fault: how long a request may take, and whether the member is out then.
FAULTS = {
    ("hang",): (SILENT_MAX_S, True),
    ("slow", "60000"): (SILENT_MAX_S, True),
    ("fail-writes",): (FAILING_MAX_S, True),
    # Every block is read from another member, and written again.
    ("fail-reads",): (FAILING_MAX_S, False),
}


class Silent:
    """A load of one request at a time: what it asks for, again and again."""

    def __init__(self, request):
        self.request = request
        self.slowest_s = 0.0
        self.answered = 0
        self.is_stopping = False

    def run(self, socket):
        client = Client(socket)
        while not self.is_stopping:
            began = time.monotonic()
            self.request(client)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.answered += 1
            time.sleep(0.05)
        client.close()

    def stop(self):
        self.is_stopping = True


@contextlib.contextmanager
def device():
    """A loop device and the process whose stop makes it hang."""
    folder = SCRATCH / "mnt"
    folder.mkdir(exist_ok=True)
    fuse = subprocess.Popen(["nbdfuse", folder / "disk", "--command", "nbdkit", "-s", "--exit-with-parent", "memory", "128M"])
    loop = None
    try:
        deadline = time.monotonic() + 30
        while not (folder / "disk").exists():
            assert time.monotonic() < deadline, "nbdfuse shows no file"
            time.sleep(0.05)
        done = subprocess.run(["losetup", "--find", "--show", folder / "disk"], check=True, capture_output=True, text=True)
        loop = done.stdout.strip()
        yield loop, fuse
    finally:
        fuse.send_signal(signal.SIGCONT)
        if loop:
            subprocess.run(["losetup", "--detach", loop], check=False)
        subprocess.run(["fusermount3", "-u", folder], check=False)
        fuse.wait(timeout=60)


def may_have_device():
    tools = all(map(shutil.which, ("nbdfuse", "nbdkit", "losetup", "fusermount3")))
    return tools and os.geteuid() == 0 and os.path.exists("/dev/fuse") and os.path.exists("/dev/loop-control")


def play_device(kind, make_stack, direct):
    """A device hangs under load, and goes on hanging until the server has ended."""
    what, versions = f"{kind}, a device that hangs, --direct {direct}", [0] * BLOCKS
    with device() as (loop, fuse):
        load = Load(versions, 1 << 32, random.Random(7))
        stack = make_stack(loop)
        data = create(stack, f"{SIZE_MIB}MiB")
        with Array(stack, data, "--direct", direct) as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
            running = threads.submit(load.run, server.socket)
            try:
                time.sleep(1)
                before_s, load.slowest_s = load.slowest_s, 0.0
                fuse.send_signal(signal.SIGSTOP)
                # Should the server hang with it, the test must end all the same.
                timer = threading.Timer(HANG_MAX_S, fuse.send_signal, (signal.SIGCONT,))
                timer.start()
                time.sleep(LOST_AFTER_S + 3)
                now = server.facts()
            finally:
                load.stop()
            running.result()
            timer.cancel()
            assert now["members_lacking"] == 1, f"{what}: {now} {server.said()}"
            assert load.slowest_s <= SILENT_MAX_S, f"{what}: a request took {load.slowest_s:.2f} s"
            check(server, versions, {})
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            # What the kernel does not give back holds the process, not the service.
            timer = threading.Timer(LOST_AFTER_S, fuse.send_signal, (signal.SIGCONT,))
            timer.start()
            status = server.process.wait(timeout=60)
            timer.cancel()
            ended_s = time.monotonic() - began
            assert status == 0, f"{what}: the server ended with {status}: {server.said()}"
        print(f"{what}: {load.answered} requests, the slowest {before_s:.3f} s before and {load.slowest_s:.3f} s after it; "
              f"the server ended in {ended_s:.2f} s", flush=True)
        fuse.send_signal(signal.SIGCONT)
        with Array(stack, data) as server:
            server.wait_until_whole()
            check(server, versions, {})
        check_image(data)


def play(array, lost, fault, what, load, versions, is_written=False):
    """A fault of a member under a load. Block 0 is written once before it where `is_written`."""
    limit_s, is_lost = FAULTS[fault]
    kind, stack = array
    data = create(stack, f"{SIZE_MIB}MiB")
    with Array(stack, data, "--allow-faults") as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
        if is_written:
            versions[0] = 1
            Client(server.socket).write(0, contents(0, 1))
        running = threads.submit(load.run, server.socket)
        try:
            time.sleep(1)
            before_s, load.slowest_s = load.slowest_s, 0.0
            server.control(lost, *fault)
            time.sleep(LOST_AFTER_S + 2 if limit_s == SILENT_MAX_S else 2)
        finally:
            load.stop()
        running.result()
        lacking = server.facts()["members_lacking"]
        assert lacking == is_lost, f"{what}: {lacking} members lack blocks: {server.said()}"
        assert load.slowest_s <= limit_s, f"{what}: a request took {load.slowest_s:.2f} s"
        check(server, versions, {})
    print(f"{kind}, {' '.join(fault)}, {lost}, {what}: {load.answered} requests, the slowest {before_s:.3f} s before and "
          f"{load.slowest_s:.3f} s after it", flush=True)
    with Array(stack, data) as server:
        server.wait_until_whole()
        check(server, versions, {})
    check_image(data)


def play_load(array, lost, fault, seed):
    versions = [0] * BLOCKS
    play(array, lost, fault, "under load", Load(versions, 1 << 32, random.Random(seed)), versions)


def play_silent(array, members, faults):
    """One request at a time. A fault of a read hits the first member, of a write the second and of a flush the third."""
    for fault in faults:
        for lost, (what, request) in zip(members, {
            "one read at a time": lambda client: client.read(0, BLOCK),
            "one write at a time": lambda client: client.write(0, bytes(BLOCK)),
            "one flush at a time": lambda client: client.flush(),
        }.items()):
            if fault != ("hang",) and "read" not in what:
                continue
            # Zeroes are written over what is there.
            is_read = "read" in what
            play(array, lost, fault, what, Silent(request), [0] * BLOCKS, is_written=is_read)


SILENT_FAULTS = FAULTS if IS_SOAK else [("hang",)]
# A member that is slow is given up as one that hangs.
LOAD_FAULTS = FAULTS if IS_SOAK else [("hang",), ("fail-writes",), ("fail-reads",)]
for members in (2, 3) if IS_SOAK else (2,):
    copies = (f"{members} members", stack_file(f"hang-{members}", members, lost_after_s=LOST_AFTER_S))
    for number, fault in enumerate(LOAD_FAULTS):
        # A read goes to the first member where no one has more to do than another.
        play_load(copies, "disk-0", fault, number)
copies = ("2 members", stack_file("hang-2", 2, lost_after_s=LOST_AFTER_S))
play_silent(copies, ["disk-0"] * 3, SILENT_FAULTS)

parity = ("parity", parity_stack_file("hang-parity", lost_after_s=LOST_AFTER_S))
for number, lost in enumerate(("home-0", "data", "parity")):
    # Each fault hits one of them every day, and in the soak all.
    of_day = {"home-0": [("fail-reads",)], "data": [("hang",)], "parity": [("fail-writes",)]}[lost]
    for fault in FAULTS if IS_SOAK else of_day:
        play_load(parity, lost, fault, number)
# The first block that is written goes to the first home. When it is written again it goes to the data disk.
if IS_SOAK:
    play_silent(parity, ["home-0", "data", "parity"], SILENT_FAULTS)

if may_have_device():
    for direct in ("off", "on") if IS_SOAK else ("off",):
        play_device("raid1", lambda loop: stack_file("hang-device", 2, backing={"disk-1": loop}, lost_after_s=LOST_AFTER_S), direct)
        if IS_SOAK:
            play_device("raid4smr", lambda loop: parity_stack_file("hang-parity-device", {"data": loop},
                                                                   lost_after_s=LOST_AFTER_S), direct)
else:
    print("no device that hangs is tried: that needs root, nbdfuse, nbdkit, /dev/fuse and loop devices")
