#!/usr/bin/env python3
"""A served stack of each system is killed with SIGKILL while many requests are in flight, started again, and every block of
the device is read. 3 rounds on the same image, or 20 under IMBREX_SOAK=1; of RIDE half as many.

The client knows of every write whether its answer came. An answered write must be there, flushed or not: the death
of a process loses nothing that the system has taken. Of a write that was in flight each block is either as before
or as written, and stays so from then on. The cache and the persistent cache are small, so that destages, rewrites
of bands and checkpoints are cut off as well."""

import os
import random
import signal
import threading
import time

from _kill import Killable
from _load import BLOCK, Load, check
from _serving import create

ROUNDS = 20 if os.environ.get("IMBREX_SOAK") == "1" else 3
BLOCKS = (1 << 30) // BLOCK
CACHES = "cache.capacity=20MiB", "translation.persistent_cache=16MiB"
BUFFERS = "cache.capacity=20MiB", "buffer.capacity=4MiB"
# Small bands, so that band rows are collected.
BANDS = "array.track_blocks=20", "array.band_tracks=20"


def main(stack, rounds, settings):
    rng = random.Random(1)
    versions = [0] * BLOCKS
    data = create(stack, "1GiB", *settings)
    for number in range(rounds):
        load = Load(versions, number << 32, rng)
        with Killable(stack, data) as server:
            timer = threading.Timer(rng.uniform(0.5, 4), server.kill)
            timer.start()
            try:
                unanswered = load.run(server.socket)
                timer.join()
            finally:
                timer.cancel()
            ended = server.process.returncode
            assert ended == -signal.SIGKILL, f"the server ended with {ended} before it was killed: {server.said()}"
            assert load.answered and unanswered, "the kill was not in the middle of the work"
        started = time.monotonic()
        with Killable(stack, data) as server:
            took_s = time.monotonic() - started
            assert "was not closed in order: recovered in" in server.said(), server.said()
            check(server, versions, unanswered)
            if number % 2 == 0:
                # The next round finds what a recovery alone has left.
                server.kill()
        print(f"{stack}, round {number + 1}: {load.answered} requests answered, {len(unanswered)} blocks in flight, "
              f"served again after {took_s:.2f} s, every block checked", flush=True)


main("pore", ROUNDS, CACHES)
main("ride", max(1, ROUNDS // 2), CACHES)
main("hwsr", max(1, ROUNDS // 2), BUFFERS)
main("s-block", max(1, ROUNDS // 2), BUFFERS)
main("raid4smr", max(1, ROUNDS // 2), BANDS)
