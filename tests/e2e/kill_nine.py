#!/usr/bin/env python3
"""fio writes to a served stack of each system, the server is killed with SIGKILL in the middle, started again, and fio
verifies every block that it had been told is written. 3 rounds and 2, or 20 each under IMBREX_SOAK=1.

One request at a time, because fio's record of what is complete has only the latest completions, as many as its
depth. Every write that was issued before those it takes as complete. With more in flight that is wrong when the
answers come in another order than the requests: a write that waits while others overtake it is never answered and
yet looked for (https://github.com/axboe/fio/issues/1950). kill_nine_in_flight.py has many requests in flight and
knows which were answered.

fio counts answered writes, not flushed ones. The death of a process loses no answered write, so nothing may be
missing; after a power cut fio would ask for more than a disk promises."""

import os
import shutil
import time

from _kill import Killable, bounded
from _serving import SCRATCH, create, need

need("fio", "timeout")
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
KILL_AFTER_S = 3


def fio(server, seed, *options):
    return ["fio", "--name=v", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite", "--size=2G",
            "--bsrange=4k-64k", "--iodepth=1", "--verify=crc32c", "--verify_fatal=1", "--fsync=64",
            f"--randseed={seed}", *options]


def checked(text):
    """Bytes that the verification has read."""
    for line in text.splitlines():
        if "READ:" in line and "io=" in line:
            return line.split("io=")[1].split()[0]
    return "0B"


def play(stack, data, number):
    for state in SCRATCH.glob("*verify.state"):
        state.unlink()
    with Killable(stack, data) as server:
        after_s = KILL_AFTER_S + (number % 5) * 0.37
        status, text = bounded(
            [*fio(server, number + 1, "--do_verify=0", "--verify_state_save=1", "--rate=80m"),
             f"--trigger-timeout={max(1, round(after_s))}", f"--trigger=kill -9 {server.process.pid}"], 60)
        server.process.wait(timeout=60)
    states = list(SCRATCH.glob("*verify.state"))
    assert states, f"fio kept no record of what it wrote (exit status {status}): {text}"
    started = time.monotonic()
    with Killable(stack, data) as server:
        took_s = time.monotonic() - started
        assert "was not closed in order: recovered in" in server.said(), server.said()
        status, text = bounded(fio(server, number + 1, "--verify_state_load=1", "--verify_only=1"), 300)
        assert status == "0", f"round {number + 1}: exit status {status}: {text}"
        assert checked(text) != "0B", f"nothing was checked: {text}"
    print(f"{stack}, round {number + 1}: served again after {took_s:.2f} s, {checked(text)} checked", flush=True)


CACHES = "cache.capacity=24MiB", "translation.persistent_cache=16MiB"
BUFFERS = "cache.capacity=24MiB", "buffer.capacity=8MiB"
for stack, rounds, settings in (("pore", 3, CACHES), ("ride", 2, CACHES), ("hwsr", 2, BUFFERS), ("s-block", 2, BUFFERS)):
    data = create(stack, "4GiB", *settings)
    for number in range(20 if IS_SOAK else rounds):
        play(stack, data, number)
    # Gigabytes, and other tests run beside this one.
    shutil.rmtree(data)
