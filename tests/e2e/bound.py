#!/usr/bin/env python3
"""`imbrex bound --json` proves its bounds: they follow from the trace and the prices and windows that it prints, computed
here as docs/systems/ride-bound.md says them and without anything of Imbrex. No policy does less."""

import bisect
import fractions
import heapq
import json
import pathlib
import random
import subprocess

from _serving import IMBREX, SCRATCH

BLOCK = 4096
TRACE = pathlib.Path(SCRATCH) / "bound.csv"
STACK = ["--set", "cache.capacity=3MiB", "--set", "translation.persistent_cache=2MiB"]
CELLS = 48


def make_trace():
    """Requests that write and read 40 places, each a few MiB long, some far more often than others."""
    choose = random.Random(5)
    lines = []
    for at in range(6000):
        place = min(int(choose.expovariate(0.12)), 39)
        offset = place * 30_000_000 // BLOCK * BLOCK + choose.randrange(200) * BLOCK
        kind = "Read" if choose.random() < 0.3 else "Write"
        lines.append(f"{128166386787582087 + at * 10_000},bound,0,{kind},{offset},{choose.randrange(1, 4) * BLOCK},1")
    TRACE.write_text("\n".join(lines) + "\n")


def requests():
    for line in TRACE.read_text().splitlines():
        _, _, _, kind, offset, length, _ = line.split(",")
        first = int(offset) // BLOCK
        yield kind == "Read", range(first, (int(offset) + int(length) - 1) // BLOCK + 1)


def run(*arguments):
    return json.loads(subprocess.run([IMBREX, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout)


def cells_of(band_of, writes, ends):
    """Per band and cell, the blocks that are written there."""
    cells = {}
    for cell, (start, end) in enumerate(zip([0, *ends], ends)):
        for block in writes[start:end]:
            cells.setdefault(band_of(block), {}).setdefault(cell, set()).add(block)
    return cells


def least_cost(cells, prices, rewrite, merged, drained):
    """What one band costs at least. In a cell that does not write to it a rewrite cleans no more."""
    count = len(prices)
    least = [0] * (count + 1)
    for start in reversed(range(count)):
        distinct, seen = [], set()
        for at in range(start, count):
            seen |= cells.get(at, set())
            distinct.append(len(seen))
        behind = least[start + 1:]
        least[start] = max(whole(distinct, prices[start:], behind, rewrite, drained),
                           counted(distinct, prices[start:], behind, rewrite, merged, drained))
    return least[0]


def whole(distinct, prices, behind, rewrite, drained):
    """The least cost when the first rewrite cleans the band."""
    spent, best = 0, None
    for blocks, price, rest in zip(distinct, prices, behind):
        best = spent + rewrite + rest if best is None else min(best, spent + rewrite + rest)
        spent += price * blocks
    return min(best, spent + (rewrite if drained and distinct[-1] else 0))


def counted(distinct, prices, behind, rewrite, merged, drained):
    """The least cost when k rewrites clean k times `merged` blocks, by the number of rewrites so far."""
    costs, ends = {0: 0}, []
    for blocks, price, rest in zip(distinct, prices, behind):
        enough = -(-blocks // merged)
        following = {}
        for before, cost in costs.items():
            ends.append(cost + (max(enough, before + 1) - before) * rewrite + rest)
            for rewrites in range(before, max(enough, before + 1)):
                held = max(blocks - rewrites * merged, 0)
                with_hold = cost + (rewrites - before) * rewrite + price * held
                following[rewrites] = min(following.get(rewrites, with_hold), with_hold)
        costs = following
    enough = -(-distinct[-1] // merged) if drained else 0
    return min(ends + [cost + max(enough - rewrites, 0) * rewrite for rewrites, cost in costs.items()])


def cover(held, room, merged):
    """The least cost of rewrites, parts of one allowed, that leave no more than the room."""
    excess, cost = sum(blocks for blocks, _ in held) - room, fractions.Fraction(0)
    cleaned = [(min(merged, blocks - from_), rewrite) for blocks, rewrite in held for from_ in range(0, blocks, merged)]
    for blocks, rewrite in sorted(cleaned, key=lambda it: fractions.Fraction(it[1], it[0])):
        part = min(max(excess, 0), blocks)
        cost += fractions.Fraction(rewrite * part, blocks)
        excess -= part
    return -(-cost // 1)


def check_writes(document, bound, costs):
    bands = document["bands"]
    starts = [start for start, _ in bands]
    writes = [block for is_read, blocks in requests() if not is_read for block in blocks]
    request_ends, end = set(), 0
    for is_read, blocks in requests():
        end += 0 if is_read else len(blocks)
        request_ends.add(end)

    def band_of(block):
        return bisect.bisect_right(starts, block) - 1

    assert all(starts[band_of(block)] <= block < sum(bands[band_of(block)]) for block in writes)
    assert document["block_writes"] == len(writes)
    merged = document["log_blocks"]
    room = document["cache_blocks"] + document["destage_slots"] + document["log_blocks"]
    proof = bound["prices"]
    ends, prices, unit = proof["cell_ends"], proof["cell_prices"], proof["unit"]
    assert len(ends) == len(prices) <= CELLS and ends[-1] == len(writes) and set(ends) <= request_ends
    assert ends == sorted(set(ends)) and min(prices) >= 0
    cells = cells_of(band_of, writes, ends)

    def proven(merged):
        of_bands = (least_cost(of_band, prices, costs[band] * unit, merged, document["drained"])
                    for band, of_band in cells.items())
        return max(0, -(-(sum(of_bands) - room * sum(prices)) // unit))

    assert proof["bound"] == proven(merged), (proof["bound"], proven(merged))
    before = total = 0
    for window in bound["windows"]["windows"]:
        assert before <= window["start"] < window["end"] <= len(writes)
        before = window["end"]
        assert {window["start"], window["end"]} <= request_ends | {0}
        inside = {}
        for block in writes[window["start"]:window["end"]]:
            inside.setdefault(band_of(block), set()).add(block)
        must_be_clean = document["drained"] and window["end"] == len(writes)
        held = [(len(blocks), costs[band]) for band, blocks in inside.items()]
        assert window["cost"] == cover(held, 0 if must_be_clean else room, merged), window
        total += window["cost"]
    assert bound["windows"]["bound"] == total
    assert bound["bound"] == max(proof["bound"], total) > 0
    longest = max(len(set().union(*of_band.values())) for of_band in cells.values())
    assert proven(longest) <= proof["bound"]
    return longest > merged and proven(longest) < proof["bound"]


def check_reads(document):
    """Reads that miss when the blocks whose reads come last are dropped, among all that are kept for a read."""
    accesses = list(requests())
    later, following = {}, []
    for at, (is_read, blocks) in reversed(list(enumerate(accesses))):
        following.append([later.get(block) for block in blocks])
        later.update((block, (at, is_read)) for block in blocks)
    following.reverse()
    kept, misses = {}, 0
    for (is_read, blocks), nexts in zip(accesses, following):
        found = [kept.pop(block, None) for block in blocks]
        misses += found.count(None) if is_read else 0
        kept.update((block, it[0]) for block, it in zip(blocks, nexts) if it and it[1])
        excess = len(kept) - document["cache_blocks"]
        for block in heapq.nlargest(max(excess, 0), kept, key=lambda block: (kept[block], block)):
            del kept[block]
    assert document["read_blocks"] == sum(len(blocks) for is_read, blocks in accesses if is_read)
    assert 0 < document["read_misses"] == misses, (document["read_misses"], misses)


make_trace()
found = {}
for drained in ([], ["--drained"]):
    # A log that holds less than is written to a band: a rewrite cleans no more than that.
    document = run("bound", TRACE, "--cache", "3MiB", "--log", "160KiB", "--cells", CELLS, "--json", *drained)
    assert check_writes(document, document["bands_rewritten"], [1] * len(document["bands"])), "the log makes no difference"
    check_writes(document, document["band_blocks_written"], [length for _, length in document["bands"]])
    document = run("bound", TRACE, "--cache", "3MiB", "--log", "2MiB", "--cells", CELLS, "--json", *drained)
    assert document == run("bound", TRACE, *STACK, "--cells", CELLS, "--json", *drained), "two runs differ"
    check_writes(document, document["bands_rewritten"], [1] * len(document["bands"]))
    check_writes(document, document["band_blocks_written"], [length for _, length in document["bands"]])
    check_reads(document)
    found[bool(drained)] = document
assert found[True]["bands_rewritten"]["bound"] > found[False]["bands_rewritten"]["bound"]

systems = "lru,lru-band,pore-cf,pore,smr-only,cmr-only,st5000as0011"
plain = run("compare", "--trace", TRACE, "--systems", systems, *STACK, "--json")
bounded = run("compare", "--trace", TRACE, "--systems", systems, *STACK, "--json", "--bound")
for before, after in zip(plain["runs"], bounded["runs"]):
    bound = after.pop("bands_rewritten_bound", None)
    assert "bands_rewritten_bound" not in before
    assert {**before, "simulation": None} == {**after, "simulation": None}
    assert (bound is None) == (after["system"] in ("cmr-only", "st5000as0011")), (after["system"], bound)
    if bound is not None:
        assert 0 < bound <= after["bands_rewritten"], (after["system"], bound)
        assert after["read_blocks"] - after["read_hits"] >= (
            found[False]["read_misses"] if after["system"] != "smr-only" else 0)
        assert after["band_bytes_written"] >= found[False]["band_blocks_written"]["bound"] * BLOCK or (
            after["system"] == "smr-only")
        print(after["system"], after["bands_rewritten"], "at least", bound)
