"""Requests that are issued when they are due, whether those before them are answered or not: an open loop, whose response times
count from the instant at which a request was due.

fio has `io_submit_mode=offload` for that. With its NBD engine fio 3.33 dies of it (signal 11), and with any other engine it hangs
in `workqueue_init` at a depth of 8 or more. Without it fio waits, before each pause, for all that it has issued."""

import math
import random
import select
import time

from _nbd import READ, WRITE, Pipeline

BLOCK = 4096
# A request that is late by more than this was not issued as it should: the machine was busy.
LATE_S = 0.05


def poisson(seed, per_s, seconds, blocks, write_share):
    """Requests of one block as a Poisson process, from a seed: when each is due, what it does and where."""
    rng, due, requests = random.Random(seed), 0.0, []
    while True:
        due += rng.expovariate(per_s)
        if due >= seconds:
            return requests
        command = WRITE if rng.random() < write_share else READ
        requests.append((due, command, rng.randrange(blocks) * BLOCK))


def run(path, requests):
    """Issues requests in the order in which they are due. Answers the response times in seconds in that order, and how many were
    issued late."""
    client, times, late = Pipeline(path), [None] * len(requests), 0
    begun, waiting = time.monotonic(), iter(enumerate(requests))
    upcoming = next(waiting, None)
    while upcoming or client.in_flight:
        now = time.monotonic() - begun
        while upcoming and upcoming[1][0] <= now:
            number, (due, command, offset) = upcoming
            late += now - due > LATE_S
            client.send((number, due), command, offset, BLOCK, bytes(BLOCK) if command == WRITE else b"")
            upcoming = next(waiting, None)
        pause = max(0.0, upcoming[1][0] - (time.monotonic() - begun)) if upcoming else None
        if select.select([client.socket], [], [], pause)[0]:
            (number, due), _ = client.answer()
            times[number] = time.monotonic() - begun - due
    client.close()
    return times, late


def percentile(times, share):
    """The least of the times that this share of them does not exceed."""
    return sorted(times)[max(1, math.ceil(share * len(times))) - 1]
