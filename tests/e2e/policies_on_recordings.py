#!/usr/bin/env python3
"""Eight policies of a cache count, on recorded and captured requests, exactly what programs written from their papers count
(`_cache_policies.py`): hits of reads and writes, evictions, what is dirty at the end, and the bands that are rewritten, for which the log of
the drive is counted as well. On parts of two recordings; with `make soak` on all recordings that ship and on the reference traces
where they are, whole."""

import collections
import csv
import json
import os
import pathlib
import subprocess

from _cache_policies import POLICIES
from _captured import captured_traces, options_of

IMBREX = os.environ["IMBREX"]
SOAK = os.environ["IMBREX_SOAK"] == "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
TMP = pathlib.Path(os.environ["IMBREX_TMP"])
BLOCK = 4096
# All bands of one length, so that the band of a block is a division.
BAND_BYTES = 16 << 20
PARTS = [("file-churn.imbrex.xz", 20_000), ("hwsr-tpcc.imbrex.xz", 20_000)]
COUNTED = ("read_lookups", "read_hits", "write_lookups", "write_hits", "clean_evictions", "dirty_evictions", "dirty_blocks", "bands_rewritten")

Below = collections.namedtuple("Below", "band_blocks log_blocks destage_slots")


class Log:
    """The log of a drive: a ring of blocks, each the newest of its address or superseded. Without room the band of the oldest goes home."""

    def __init__(self, below):
        self.below, self.ring, self.newest, self.of_band = below, collections.deque(), {}, collections.defaultdict(set)
        self.appended = self.rewritten = 0

    def append(self, block):
        while len(self.ring) == self.below.log_blocks:
            number, oldest = self.ring[0]
            if self.newest.get(oldest) != number:
                self.ring.popleft()
                continue
            for other in self.of_band.pop(oldest // self.below.band_blocks):
                del self.newest[other]
            self.rewritten += 1
        self.appended += 1
        self.newest[block] = self.appended
        self.of_band[block // self.below.band_blocks].add(block)
        self.ring.append((self.appended, block))


def count(requests, policy, capacity, below):
    """What the cache `policy` and the log below it count."""
    cache, log, dirty = POLICIES[policy](capacity, below), Log(below), set()
    counts = collections.Counter()
    for blocks, is_write in requests:
        assert len(blocks) <= capacity, "a request that goes around the cache"
        kind = "write" if is_write else "read"
        counts[kind + "_lookups"] += len(blocks)
        for block in blocks:
            counts[kind + "_hits"] += block in cache
            for victim in cache.request(block, is_write):
                if victim in dirty:
                    dirty.remove(victim)
                    counts["dirty_evictions"] += 1
                    log.append(victim)
                else:
                    counts["clean_evictions"] += 1
            if is_write:
                dirty.add(block)
    counts["dirty_blocks"] = len(dirty)
    counts["bands_rewritten"] = log.rewritten
    return {key: counts[key] for key in COUNTED}


def requests_of(trace, options):
    table = TMP / "requests.csv"
    subprocess.run([IMBREX, "trace", "convert", trace, table, *map(str, options)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    requests = []
    with table.open(newline="") as rows:
        for _, _, _, kind, offset, length, _ in csv.reader(rows):
            first, end = int(offset) // BLOCK, -(-(int(offset) + int(length)) // BLOCK)
            requests.append((range(first, end), kind == "Write"))
    return requests


def check(trace, *options):
    requests = requests_of(trace, options)
    longest = max(len(blocks) for blocks, _ in requests)
    report = json.loads(subprocess.run(
        [IMBREX, "compare", "--quiet", "--trace", trace, *map(str, options), "--systems", "lru", "--untimed", "--json",
         "--set", "cache.mode=read-write", "--set", f"cache.capacity={share(requests, longest)}B",
         "--set", f"translation.bands=fixed:{BAND_BYTES}B", "--sweep", "cache.policy=" + ",".join(POLICIES)],
        check=True, stdout=subprocess.PIPE).stdout)
    assert len(report["runs"]) == len(POLICIES)
    told, rewritten = [], 0
    for run in report["runs"]:
        policy = run["parameters"]["cache.policy"]
        log_blocks, slots = run["persistent_cache_bytes"] // BLOCK, run["resolved"]["cache"]["destage_slots"]
        expected = count(requests, policy, run["capacity_blocks"], Below(BAND_BYTES // BLOCK, log_blocks, slots))
        found = {**run["nodes"]["cache"], **run["nodes"]["translation"]}
        found = {key: found[key] for key in COUNTED}
        assert found == expected, f"{trace}, {policy}:\n  {found}\n  {expected} by the program of its paper"
        rewritten += found["bands_rewritten"]
        told.append(f"{policy} {found['read_hits'] + found['write_hits']}, {found['bands_rewritten']}")
    blocks = sum(len(blocks) for blocks, _ in requests)
    print(f"{pathlib.Path(trace).name}: {blocks} blocks; hits and bands rewritten of {'; '.join(told)}", flush=True)
    return rewritten


def share(requests, longest):
    """2 % of the blocks that are touched, in bytes, and no less than the longest request."""
    touched = set()
    for blocks, _ in requests:
        touched.update(blocks)
    return max(len(touched) // 50, longest) * BLOCK


if SOAK:
    for recording in sorted((ROOT / "workloads").glob("*.imbrex*")):
        check(recording)
    for trace, how_read in captured_traces():
        check(trace, *options_of(how_read))
else:
    for name, limit in PARTS:
        assert check(ROOT / "workloads" / name, "--limit", limit) > 1000, "the policies had too little to decide"
