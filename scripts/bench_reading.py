#!/usr/bin/env python3
"""Reading a CSV: our reader beside libCacheSim's, on one file of 5 million requests in the columns of its CloudPhysics traces.

The requests are those of CloudPhysics (captured) where ../shared is, else those of the recording of pgbench, over and over. The programs
take turns, five times each; the figures are medians of processor time. Ours is that of the reader alone (`read-trace` of the benchmark
`simulate`). libCacheSim's is the shorter one of two: its count of the requests, and `process_trace` with a cache of one byte, into which
nothing goes, so that beside reading there is a look-up in an empty table. Both must read as many requests. Needs the Python package
`libcachesim`.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench_counting import CAPTURED, IMBREX, ROOT, TURNS

REQUESTS = 5_000_000
CODES = {"Read": "28", "Write": "2a"}
LIBCACHESIM = "import sys, bench_reading; bench_reading.libcachesim(*sys.argv[1:])"
READER = [os.environ.get("CARGO") or "cargo", "bench", "--quiet", "--locked", "-p", "imbrex-sim", "--bench", "simulate", "--"]


def libcachesim(trace, way):
    """Prints how many requests were read and the processor time that took. It is called in a process of its own."""
    import libcachesim as lib

    columns = lib.ReaderInitParam(has_header=True, has_header_set=True, delimiter=",", obj_id_is_num=True, obj_id_is_num_set=True)
    columns.time_field, columns.obj_size_field, columns.obj_id_field = 2, 4, 5
    reader = lib.TraceReader(trace, lib.TraceType.CSV_TRACE, columns)
    cache = lib.FIFO(cache_size=1)
    before = time.process_time()
    if way == "count":
        requests = reader.get_num_of_req()
    else:
        cache.process_trace(reader)
        # The read that finds the end is counted too.
        requests = reader.n_read_req - 1
    print(json.dumps([requests, time.process_time() - before]))


def answer(command):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def write_table(trace, folder):
    """The file that both read."""
    ours, table = folder / "ours.csv", folder / "table.csv"
    subprocess.run([IMBREX, "trace", "convert", trace, ours], check=True, capture_output=True)
    rows = []
    with open(ours) as lines:
        for ticks, _host, _disk, operation, start, length, _response in (line.split(",") for line in lines):
            if operation in CODES:
                # Microseconds of thirteen digits, as CloudPhysics has them.
                rows.append(f"1,{int(ticks) // 10 % 10**13},{CODES[operation]},{length},{int(start) // 512}\n")
    with open(table, "w") as out:
        out.write("version,time,op,size,lbn\n")
        for begun in range(0, REQUESTS, len(rows)):
            out.writelines(rows[:REQUESTS - begun])
    return table


def main():
    try:
        import libcachesim as lib
    except ImportError:
        print("no libcachesim in this Python: nothing to read beside (`pip install libcachesim`)")
        return
    label, trace = ("CloudPhysics (captured)", CAPTURED) if CAPTURED.is_file() else (
        "pgbench (recorded)", ROOT / "workloads/pgbench.imbrex.xz")
    with tempfile.TemporaryDirectory() as name:
        table = str(write_table(trace, pathlib.Path(name)))
        commands = {"ours": [*READER, "read-trace", table]}
        for way in ("count", "process"):
            commands[way] = [sys.executable, "-c", LIBCACHESIM, table, way]
        times = {name: [] for name in commands}
        for _ in range(TURNS):
            for name, command in commands.items():
                requests, taken = answer(command)
                if requests != REQUESTS:
                    sys.exit(f"{name}: {requests} requests read, the file has {REQUESTS}")
                times[name].append(taken)
    ours, count, process = (statistics.median(times[name]) for name in commands)
    print(f"\nreading {REQUESTS:,} requests of CSV, {label}, libCacheSim {lib.__version__}:")
    print(f"  libCacheSim, count {REQUESTS / count / 1e6:.2f}, process_trace {REQUESTS / process / 1e6:.2f} million requests a CPU second")
    print(f"  imbrex {REQUESTS / ours / 1e6:.2f} million requests a CPU second, {min(count, process) / ours:.2f} times as many")


if __name__ == "__main__":
    main()
