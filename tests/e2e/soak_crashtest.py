#!/usr/bin/env python3
"""The crash search at length: a million different power cuts of the PORE stack in every mode, windows of up to 12 pending writes
in all their subsets, and every workload of up to three requests. CRASHTEST_POINTS (a multiple of 20,000) makes the
first two shorter and leaves out the workloads of three; make soak runs it whole."""

# Alone: it takes every core.

import json
import os
import re
import subprocess

from _serving import IMBREX

MILLION = 1_000_000
SEED_POINTS = 500
# A part says what it found before the next one begins.
PART_SEEDS = 40
WINDOW_SEEDS = 20
# Requests in the alphabet of short workloads.
LETTERS = 19
FAILURES = []
# A write that fails, and so the record of lost blocks, is not part of a workload whose power is cut.
RECORDS = ("flash: record map", "flash: record free", "flash: record drop", "smr: record append", "smr: record zero",
           "smr: record scratch", "smr: record stretch", "smr: record home", "smr: record bypass")
# A band that the sequential bypass fills to its end is rare below a cache.
RARE = "smr: record table"
MODES = {"none", "all", "prefix", "subset", "reordered", "torn-512", "torn-garbage", "exhaustive"}


def crashtest(*options):
    """What it says; a failed point is told at once, and all three searches go on."""
    done = subprocess.run([IMBREX, "crashtest", "--stack", "pore", *map(str, options)], capture_output=True, text=True)
    said = f"crashtest {options}: exit status {done.returncode}\n{done.stderr}"
    assert done.returncode in (0, 1) and done.stdout, said
    if done.returncode == 1:
        FAILURES.append(said)
        print(said, flush=True)
    return done.stdout


def campaign(seeds, *options):
    """What a campaign found: by name, its counts."""
    found = json.loads(crashtest("--seeds", f"{seeds.start}..{seeds.stop}", "--json", *options))
    assert set(found["by_mode"]) == MODES, found["by_mode"]
    return found


def points_wanted():
    text = os.environ.get("CRASHTEST_POINTS", str(MILLION))
    step = PART_SEEDS * SEED_POINTS
    assert text.isdecimal() and int(text) > 0 and int(text) % step == 0, \
        f"CRASHTEST_POINTS={text}: accepted: a multiple of {step}"
    return int(text)


def every_mode(points):
    """The campaign in parts, every mode and every fault, until so many points were different power cuts."""
    tried, failed, deep, cuts = 0, 0, 0, 0
    modes, pending = dict.fromkeys(MODES, 0), {}
    start = 0
    # A seed ends at its first failure: where many fail, the end is that of twice as many points.
    while cuts < points and start * SEED_POINTS < 2 * points:
        part = campaign(range(start, start + PART_SEEDS), "--soak", "--points", SEED_POINTS)
        start += PART_SEEDS
        assert all(part["by_fault"].values()), f"a kind of fault was never tried: {part['by_fault']}"
        least = part["least"]
        assert least["journal_wraps"] >= 1 and least["checkpoints"] >= 3 and least["bands_rewritten"] >= 10, least
        tried += part["points"]
        failed += len(part["failures"])
        deep += part["crashed_recoveries"]
        cuts += part["distinct_cuts"]
        for mode, count in part["by_mode"].items():
            modes[mode] += count
        for name, row in part["coverage"].items():
            pending[name] = {mode: pending.get(name, {}).get(mode, 0) + row[mode] for mode in MODES}
    assert tried == start * SEED_POINTS or failed, f"{tried} points of {start} seeds"
    assert min(modes.values()) >= tried // 10 - failed, modes
    assert deep >= tried // 10, f"recovery was cut short at {deep} of {tried} points"
    # What decides where data is must have been cut in every mode.
    for name in ("flash: superblock", "flash: checkpoint page", "flash: journal block", "smr: superblock",
                 "smr: checkpoint page", "smr: checksum page", "smr: journal block", "smr: write-intent page"):
        assert name in pending and all(pending[name].values()), f"{name} was not pending in every mode: {pending}"
    # Windows of few writes have few of the rare ones, and their subsets are all tried.
    for name in RECORDS:
        drawn = [count for mode, count in pending.get(name, {}).items() if mode != "exhaustive"]
        assert points < MILLION or (drawn and all(drawn)), f"{name} was not pending in every mode: {pending.get(name)}"
    assert points < MILLION or any(pending.get(RARE, {}).values()), f"{RARE} was never pending"
    print(f"{failed} of {tried} points failed (seeds 0 to {start - 1}); {cuts} different power cuts; recovery cut short "
          f"at {deep}; {modes}", flush=True)


def windows(points):
    """Windows of up to 12 pending writes, all subsets of each."""
    found = campaign(range(WINDOW_SEEDS), "--soak", "--mode", "exhaustive", "--points", points // WINDOW_SEEDS)
    failed = len(found["failures"])
    assert found["points"] == points or failed, found["points"]
    assert found["by_mode"]["exhaustive"] == found["points"], found["by_mode"]
    print(f"{failed} of {found['points']} subsets of windows of up to 12 writes failed; {found['distinct_cuts']} "
          "are different", flush=True)


def short(length):
    """Every workload of up to `length` requests, every moment, every subset of up to 12 pending writes."""
    text = crashtest("--short", length, "--soak")
    match = re.search(r"pore: (\d+) of (\d+) workloads failed, (\d+) moments .*, (\d+) images judged after \d+ "
                      r"recoveries; left out .*: (\d+) moments", text)
    assert match, text
    failed, workloads, moments, images, left_out = map(int, match.groups())
    assert workloads == sum(LETTERS ** places for places in range(1, length + 1)), text
    assert moments > workloads and images > moments, text
    print(f"{failed} of {workloads} workloads failed: {images} images of {moments} moments; {left_out} had more than "
          "12 pending writes", flush=True)


POINTS = points_wanted()
every_mode(POINTS)
windows(POINTS // 10)
short(3 if POINTS == MILLION else 2)
assert not FAILURES, f"{len(FAILURES)} searches found something:\n" + "\n".join(FAILURES)
