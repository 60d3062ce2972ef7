#!/usr/bin/env python3
"""Simulating beside counting: `lru` and `pore`, with and without times, and libCacheSim's LRU on the same blocks of 4 KiB.

libCacheSim gets the blocks of the same requests as a binary trace (oracleGeneral), one block a request, and a cache of as many blocks, with
the size of its hash table as it comes. The programs take turns, five times each; the figures are medians of processor time. Ours is that of
the whole command, which reads the trace as it is stored and finds out how large the cache is; libCacheSim's is that of `process_trace`
alone. Both must count the same misses. Needs the Python package `libcachesim` (a wheel of the program itself).

With arguments: traces to measure. Without: CloudPhysics (captured) where ../shared is, else the recording of pgbench, and a synthetic one
of single blocks.
"""

import json
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMBREX = os.environ.get("IMBREX") or ROOT / "target/release/imbrex"
CAPTURED = ROOT.parent / "shared/traces/cloudphysics_libcachesim.csv.zst"
TURNS = 5
BLOCK_BYTES = 4096
OURS = (("lru",), ("pore",), ("lru", "--untimed"), ("pore", "--untimed"))
LIBCACHESIM = "import sys, bench_counting; bench_counting.libcachesim(*sys.argv[1:])"


def libcachesim(trace, blocks):
    """Prints the miss ratio and the processor time of a run. It is called in a process of its own."""
    import libcachesim as lib

    reader = lib.TraceReader(trace, lib.TraceType.ORACLE_GENERAL_TRACE)
    cache = lib.LRU(cache_size=int(blocks) * BLOCK_BYTES)
    before = time.process_time()
    missed, _ = cache.process_trace(reader)
    print(json.dumps([missed, time.process_time() - before]))


def compare(trace, system, *options):
    """The report of a system and the processor time of the command."""
    command = [IMBREX, "compare", "--trace", trace, "--systems", system, "--jobs", "1", "--json", *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout)["runs"][0], sum(
        getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime"))


def as_blocks(trace, folder):
    """The blocks of a trace as libCacheSim reads them, and how many there are."""
    table = folder / "trace.csv"
    subprocess.run([IMBREX, "trace", "convert", trace, table], check=True, capture_output=True)
    blocks = []
    with open(table) as lines:
        for _time, _host, _disk, operation, start, length, _response in (line.split(",") for line in lines):
            if operation in ("Read", "Write"):
                blocks += range(int(start) // BLOCK_BYTES, -(-(int(start) + int(length)) // BLOCK_BYTES))
    table.unlink()
    path = folder / "trace.oracle"
    record = struct.Struct("<IQIq")
    path.write_bytes(b"".join(record.pack(0, block, BLOCK_BYTES, -1) for block in blocks))
    return path, len(blocks)


def measure(label, trace, folder):
    path, blocks = as_blocks(trace, folder)
    run, _ = compare(trace, "lru")
    hits = run["read_hits"] + run["write_hits"]
    times = {name: [] for name in (*OURS, "libCacheSim")}
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    for _ in range(TURNS):
        for name in OURS:
            times[name].append(compare(trace, *name)[1])
        command = [sys.executable, "-c", LIBCACHESIM, str(path), str(run["capacity_blocks"])]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        missed, taken = json.loads(done.stdout)
        if round(missed * blocks) != blocks - hits:
            sys.exit(f"{label}: libCacheSim misses {missed * blocks:.0f} of {blocks} blocks, `lru` {blocks - hits}")
        times["libCacheSim"].append(taken)
    beside = statistics.median(times["libCacheSim"])
    print(f"\n{label}: {blocks:,} blocks, {run['capacity_blocks']:,} cached, {hits / blocks:.1%} hit, "
          f"libCacheSim's LRU {blocks / beside / 1e6:.2f} million blocks a CPU second")
    for name in OURS:
        taken = statistics.median(times[name])
        print(f"  {' '.join(name):16} {blocks / taken / 1e6:6.2f} million blocks a CPU second, {beside / taken:5.2f} times as many")


def main():
    try:
        import libcachesim  # noqa: F401
    except ImportError:
        print("no libcachesim in this Python: nothing to compare with (`pip install libcachesim`)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one_block = folder / "one-block.imbrex"
        traces = [(pathlib.Path(given).name, given) for given in sys.argv[1:]]
        if not traces:
            subprocess.run([IMBREX, "trace", "synth", "one-block", one_block, "--scale", "10"], check=True, capture_output=True)
            captured = ("CloudPhysics (captured)", CAPTURED) if CAPTURED.is_file() else (
                "pgbench (recorded)", ROOT / "workloads/pgbench.imbrex.xz")
            traces = [captured, ("one-block (SYNTHETIC)", one_block)]
        for label, trace in traces:
            measure(label, trace, folder)


if __name__ == "__main__":
    main()
