#!/usr/bin/env python3
"""Cleans of a log whose table of entries is not kept right, as in two states of PORE's prototype.

    imbrex trace synth wdev-like wdev.csv --scale 4
    python3 experiments/pore/stale_entries.py wdev.csv

A model apart from Imbrex, of the writes alone: no time. Without the fault it counts the cleans that Imbrex counts.
docs/systems/pore-magnitudes.md tells the result.
"""
import sys
from collections import OrderedDict, defaultdict

BAND = 4608  # blocks: 18 MiB
ZONE = 5120  # blocks: 20 MiB

# Which entries of merged blocks stay in the table.
NONE, ONE_OF_TWO, ALL = range(3)


def writes(path):
    blocks = []
    for line in open(path):
        fields = line.split(",")
        if fields[3] == "Write":
            first = int(fields[4]) // 4096
            blocks.extend(range(first, first + int(fields[5]) // 4096))
    return blocks


class Log:
    """A ring of slots. A block that the table knows is written to its old slot, whoever has it now."""

    def __init__(self, slots, stale):
        self.slots, self.stale = slots, stale
        self.holds = [None] * slots  # the block of each slot, None when it was merged
        self.table = {}
        self.has_two_entries = set()
        self.slots_of_band = defaultdict(set)
        self.first = self.used = 0
        self.written = self.cleans = 0

    def write(self, block):
        self.written += 1
        slot = self.table.get(block)
        if slot is None:
            while self.used >= self.slots:
                self.free_first()
            slot = (self.first + self.used) % self.slots
            self.used += 1
            self.table[block] = slot
        else:
            self.has_two_entries.add(block)
        if self.holds[slot] is not None:
            self.slots_of_band[self.holds[slot] // BAND].discard(slot)
        self.holds[slot] = block
        self.slots_of_band[block // BAND].add(slot)

    def free_first(self):
        if self.holds[self.first] is not None:
            self.clean(self.holds[self.first] // BAND)
        self.first = (self.first + 1) % self.slots
        self.used -= 1

    def clean(self, band):
        self.cleans += 1
        for slot in self.slots_of_band.pop(band):
            block, self.holds[slot] = self.holds[slot], None
            if self.stale == NONE:
                del self.table[block]
            elif self.stale == ONE_OF_TWO and block not in self.has_two_entries:
                self.table.pop(block, None)
            self.has_two_entries.discard(block)


def lru(blocks, capacity, log):
    cached = OrderedDict()
    for block in blocks:
        if block in cached:
            cached.move_to_end(block)
            continue
        if len(cached) >= capacity:
            log.write(cached.popitem(last=False)[0])
        cached[block] = True


def pore(blocks, capacity, log):
    cached, evictable = OrderedDict(), OrderedDict()
    in_zone, accesses = defaultdict(int), defaultdict(int)
    opened, misses = None, 0

    def divide():
        nonlocal opened, evictable, misses
        ranks = sorted(((1 + accesses[z] / n) / n, z) for z, n in in_zone.items() if n)
        opened, dirty = set(), 0
        for _, zone in ranks:
            if dirty >= log.slots:
                break
            opened.add(zone)
            dirty += in_zone[zone]
        evictable = OrderedDict((b, True) for b in cached if b // ZONE in opened)
        accesses.clear()
        misses = 0

    for block in blocks:
        zone = block // ZONE
        accesses[zone] += 1
        if block in cached:
            cached.move_to_end(block)
            if block in evictable:
                evictable.move_to_end(block)
            continue
        if len(cached) >= capacity:
            if not evictable:
                divide()
            victim = evictable.popitem(last=False)[0]
            del cached[victim]
            in_zone[victim // ZONE] -= 1
            log.write(victim)
        cached[block] = True
        in_zone[zone] += 1
        if opened is None or zone in opened:
            evictable[block] = True
        misses += 1
        is_first = opened is None and len(cached) >= capacity
        if is_first or (opened is not None and misses >= log.slots):
            divide()


def main():
    blocks = writes(sys.argv[1])
    touched = len({block // BAND for block in blocks}) * BAND
    for stale, name in enumerate(["none stays", "one of two stays", "all stay"]):
        for system in ["smr-only", "lru", "pore"]:
            log = Log(touched // 256, stale)
            if system == "smr-only":
                for block in blocks:
                    log.write(block)
            else:
                {"lru": lru, "pore": pore}[system](blocks, int(touched * 0.02), log)
            amplification = log.cleans * BAND / log.written
            print(f"{name}: {system}: {log.cleans} cleans, amplification {amplification:.1f}")


main()
