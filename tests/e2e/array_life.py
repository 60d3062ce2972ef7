#!/usr/bin/env python3
"""The life of a served array of copies: a member fails under load, a new file takes its place and is filled, all is
compared; the server is killed with SIGKILL in each of these phases and started again. No request fails but by the kill,
everything that was answered is there, and `imbrex check --data` finds nothing. A round with two members; three with two
and three with three under IMBREX_SOAK=1.

Then fio writes and verifies in three phases, healthy, degraded and rebuilding, and its response times are printed."""

# Alone: it prints response times.

import concurrent.futures
import json
import os
import random
import signal
import subprocess
import time

from _array import Array, check_image, file_of, stack_file
from _load import BLOCK, Load, check
from _serving import SCRATCH, create, need

need("fio")
ROUNDS = {2: 3, 3: 3} if os.environ.get("IMBREX_SOAK") == "1" else {2: 1}
SIZE_MIB = 64
BLOCKS = (SIZE_MIB << 20) // BLOCK
# How long load goes on in a phase before the kill. The regions that were written are cleared after a second.
PHASE_S = 1.5
# Slow enough that a member of 64 MiB is not filled, nor compared, before the kill.
RATE = "8MiB/s"


class Life:
    """An image, and what its blocks must be."""

    def __init__(self, members, seed):
        self.members = members
        self.rng = random.Random(seed)
        self.stack = stack_file(f"mirror-{members}", members)
        self.data = create(self.stack, f"{SIZE_MIB}MiB")
        self.versions = [0] * BLOCKS
        self.starts = 0
        # Blocks of writes that were not answered at a kill. A host that is slow may have none in one phase.
        self.in_flight = 0

    def phase(self, name, deeds, then):
        """Deeds under load, a kill in the middle of them, and another start. `then` must hold of that one."""
        self.starts += 1
        load = Load(self.versions, self.starts << 32, self.rng)
        with Array(self.stack, self.data) as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
            running = threads.submit(load.run, server.socket)
            try:
                time.sleep(self.rng.uniform(0.2, 0.5))
                begun = deeds(server)
                time.sleep(self.rng.uniform(0.5, 1) * PHASE_S)
                assert not running.done(), f"{name}: the load has ended: {running.exception()}"
                assert begun is None or begun.poll() is None, f"{name}: the phase was over before the kill"
            finally:
                server.kill()
            unanswered = running.result()
            if begun:
                begun.wait(timeout=60)
        assert load.answered, f"{name}: nothing was answered before the kill"
        self.in_flight += len(unanswered)
        began = time.monotonic()
        with Array(self.stack, self.data) as server:
            took_s = time.monotonic() - began
            assert "was not closed in order: recovered in" in server.said(), server.said()
            check(server, self.versions, unanswered)
            then(server)
            check(server, self.versions, {})
        check_image(self.data)
        print(f"{self.members} members, {name}: {load.answered} requests answered, {len(unanswered)} blocks in flight, "
              f"served again after {took_s:.2f} s; every block and `check --data` are right", flush=True)

    def round(self):
        lost = f"disk-{self.rng.randrange(self.members)}"

        def is_whole(server):
            server.wait_until_whole()
            # There is nothing left to do.
            server.control("array", "rebuild")
            facts = server.facts()
            assert facts["members_lacking"] == facts["missing_members"] == facts["unreadable_blocks"] == 0, facts

        def replace(server):
            server.control(lost, "fail")
            server.control(lost, "replace")
            return server.begin("array", "rebuild", "--rate", RATE)

        def finds_nothing(server):
            is_whole(server)
            server.control("array", "scrub")
            facts = server.facts()
            assert facts["wrong_blocks"] == facts["unreadable_blocks"] == 0, facts

        def is_missing(server):
            assert f"`{lost}`" in server.said(), server.said()
            assert server.facts()["members_lacking"] == 1

        self.phase("healthy", lambda server: None, is_whole)
        # Its file is there at the next start: it gets what was written meanwhile.
        self.phase("degraded", lambda server: server.control(lost, "fail") and None, is_whole)
        self.phase("rebuilding", replace, is_whole)
        self.phase("scrubbing", lambda server: server.begin("array", "scrub", "--rate", RATE), finds_nothing)
        # And now it is gone.
        file_of(self.data, lost).unlink()
        self.phase("degraded, a file is gone", lambda server: None, is_missing)
        self.phase("rebuilding in its place", lambda server: replace_missing(server, lost), is_whole)


def replace_missing(server, lost):
    server.control(lost, "replace")
    return server.begin("array", "rebuild", "--rate", RATE)


def fio(server, name):
    """Writes all of the device at random and verifies it. Answers response times of its writes in ms."""
    result = SCRATCH / "fio.json"
    subprocess.run(["fio", f"--name={name}", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite", "--bs=4k",
                    "--iodepth=16", f"--size={SIZE_MIB}M", "--verify=crc32c", "--verify_fatal=1", "--fsync=256",
                    f"--randseed={len(name)}", "--output-format=json", f"--output={result}"],
                   check=True, stdout=subprocess.DEVNULL, cwd=SCRATCH, timeout=300)
    text = result.read_text(encoding="utf-8")
    # What fio remarks on comes before the document.
    write = json.loads(text[text.index("{"):])["jobs"][0]["write"]
    times = write["clat_ns"]
    return write["iops"], times["mean"] / 1e6, times["percentile"]["99.000000"] / 1e6, times["max"] / 1e6


def in_phases():
    """fio in three phases. The slow rebuild lasts as long as fio does."""
    stack = stack_file("phases", 2)
    data = create(stack, f"{SIZE_MIB}MiB")
    rows = []
    with Array(stack, data) as server:
        rows.append(("healthy", *fio(server, "healthy")))
        server.control("disk-1", "fail")
        rows.append(("degraded", *fio(server, "degraded")))
        server.control("disk-1", "replace")
        rebuild = server.begin("array", "rebuild", "--rate", "1MiB/s")
        rows.append(("rebuilding", *fio(server, "rebuilding")))
        assert rebuild.poll() is None, "the rebuild was over before fio was"
        # It is not over: the next start goes on with it, though nobody asks for anything.
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0, server.said()
        rebuild.wait(timeout=60)
    with Array(stack, data) as server:
        server.wait_until_whole()
    check_image(data)
    for phase, iops, mean, p99, worst in rows:
        print(f"fio, {phase}: {iops:,.0f} writes a second, in ms mean {mean:.2f}, P99 {p99:.2f}, at most {worst:.1f}")


for members, rounds in ROUNDS.items():
    life = Life(members, members)
    for _ in range(rounds):
        life.round()
    assert life.in_flight > 0, "no kill was in the middle of the work"
in_phases()
