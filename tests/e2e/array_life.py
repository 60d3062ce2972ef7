#!/usr/bin/env python3
"""The life of a served array, of copies (`raid1`) and with parity (`raid4smr`): a member fails under load, a new file takes
its place and is filled, all is compared; the server is killed with SIGKILL in each of these phases and started again. No
request fails but by the kill, everything that was answered is there, and `imbrex check --data` finds nothing. A round with
two copies and one with parity; under IMBREX_SOAK=1 three with two copies, three with three and three with parity. In each
round of `raid4smr` a home, the data disk and the parity disk are lost, one after another, and in three rounds each of them
in every phase. Band rows are collected meanwhile.

Then fio writes and verifies to the array with parity (in the soak to both) in three phases, healthy, degraded and rebuilding, and its response times are printed."""

# Alone: it prints response times.

import concurrent.futures
import json
import os
import random
import signal
import subprocess
import time

from _array import HOMES, Array, check_image, file_of, parity_stack_file, stack_file
from _load import BLOCK, Load, check
from _serving import SCRATCH, create, need

need("fio")
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
SIZE_MIB = 64
# How long load goes on in a phase before the kill. The regions that were written are cleared after a second.
PHASE_S = 1.5


class Life:
    """An image, and what its blocks must be."""

    SIZE_MIB = SIZE_MIB
    # Slow enough that a member is not filled, nor compared, before the kill.
    RATE = "8MiB/s"

    def __init__(self, what, stack, seed):
        self.what = what
        self.rng = random.Random(seed)
        self.stack = stack
        self.data = create(stack, f"{self.SIZE_MIB}MiB")
        self.versions = [0] * ((self.SIZE_MIB << 20) // BLOCK)
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
                self.look(server)
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
        print(f"{self.what}, {name}: {load.answered} requests answered, {len(unanswered)} blocks in flight, "
              f"served again after {took_s:.2f} s; every block and `check --data` are right", flush=True)

    def look(self, server):
        """Looks at the array under load, just before a kill."""

    def round(self, away, filled, gone):
        """All phases. Of the members one is away for a while, one is filled anew and one loses its file."""
        def is_whole(server):
            server.wait_until_whole()
            # There is nothing left to do.
            server.control("array", "rebuild")
            facts = server.facts()
            assert facts["members_lacking"] == facts["missing_members"] == server.unreadable_blocks() == 0, facts

        def finds_nothing(server):
            is_whole(server)
            found = server.scrub()
            assert found == (0, 0, 0) and server.unreadable_blocks() == 0, found

        def is_missing(server):
            assert f"`{gone}`" in server.said(), server.said()
            assert server.facts()["members_lacking"] == 1

        def fail(server):
            server.control(away, "fail")

        def fail_and_replace(server):
            server.control(filled, "fail")
            return self.replace(server, filled)

        self.phase("healthy", lambda server: None, is_whole)
        # Its file is there at the next start: it gets what was written meanwhile.
        self.phase(f"degraded without {away}", fail, is_whole)
        self.phase(f"rebuilding {filled}", fail_and_replace, is_whole)
        self.phase("scrubbing", lambda server: server.begin("array", "scrub", "--rate", self.RATE), finds_nothing)
        # And now it is gone.
        file_of(self.data, gone).unlink()
        self.phase(f"degraded, the file of {gone} is gone", lambda server: None, is_missing)
        self.phase(f"rebuilding {gone} in its place", lambda server: self.replace(server, gone), is_whole)

    def replace(self, server, lost):
        server.control(lost, "replace")
        return server.begin("array", "rebuild", "--rate", self.RATE)


class Copies(Life):
    """A life of a `raid1`."""

    def __init__(self, members):
        super().__init__(f"{members} members", stack_file(f"mirror-{members}", members), members)
        self.members = members

    def play(self, rounds):
        for _ in range(rounds):
            self.round(*[f"disk-{self.rng.randrange(self.members)}"] * 3)


class Parity(Life):
    """A life of a `raid4smr`."""

    SIZE_MIB = 32
    # A home has a third of the blocks, and of those only what was written.
    RATE = "2MiB/s"

    def __init__(self, seed):
        super().__init__("parity", parity_stack_file("parity"), seed)
        self.collections = 0

    def look(self, server):
        self.collections += server.facts()["collections"]

    def play(self, rounds):
        for number in range(rounds):
            lost = [self.rng.choice(HOMES), "data", "parity"]
            self.round(*lost[number % 3:], *lost[:number % 3])
        assert self.collections > 0, "no band row was collected under load"
        print(f"parity: {self.collections} band rows were collected under load")


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


def in_phases(kind, stack, lost, rate):
    """fio in three phases. The slow rebuild lasts as long as fio does."""
    data = create(stack, f"{SIZE_MIB}MiB")
    rows = []
    with Array(stack, data) as server:
        rows.append(("healthy", *fio(server, "healthy")))
        server.control(lost, "fail")
        rows.append(("degraded", *fio(server, "degraded")))
        server.control(lost, "replace")
        rebuild = server.begin("array", "rebuild", "--rate", rate)
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
        print(f"{kind}, fio, {phase}: {iops:,.0f} writes a second, in ms mean {mean:.2f}, P99 {p99:.2f}, at most {worst:.1f}",
              flush=True)


ROUNDS = 3 if IS_SOAK else 1
for life in (Copies(2), *((Copies(3),) if IS_SOAK else ()), Parity(4)):
    life.play(ROUNDS)
    assert life.in_flight > 0, "no kill was in the middle of the work"
if IS_SOAK:
    in_phases("raid1", stack_file("phases", 2), "disk-1", "1MiB/s")
in_phases("raid4smr", parity_stack_file("parity-phases"), "home-1", "256KiB/s")
