#!/usr/bin/env python3
"""An emulated drive-managed SMR disk shows the cliff that real ones have: random writes are quick until the
persistent cache is full of entries, and then wait for bands to be cleaned. The same requests, simulated,
take as long as they took."""

# Alone: it measures how long writes take.

import csv
import json
import os
import subprocess

from _serving import IMBREX, SCRATCH, Emulating, need

need("fio")
STACK = "st5000as0011"
SCALE = 512
RUN_S = 27
FIRST_WRITES = 250
# Seconds of the run in which every write waits for a band.
LATER_S = (10, 25)

recording = SCRATCH / "writes.imbrex"
with Emulating(STACK, "--scale", str(SCALE), "--record", recording) as server:
    subprocess.run(
        ["fio", "--name=cliff", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randwrite", "--bs=4k",
         "--iodepth=1", "--direct=1", "--norandommap", "--time_based", f"--runtime={RUN_S}",
         "--randseed=1", "--output", SCRATCH / "fio.out"], check=True, cwd=SCRATCH)
emulated = server.run_report()

listed = SCRATCH / "writes.csv"
subprocess.run([IMBREX, "trace", "convert", recording, listed], check=True, stdout=subprocess.DEVNULL)
with open(listed, encoding="utf-8", newline="") as file:
    # The format of the MSR traces: a time in units of 100 ns comes first, the kind fourth.
    times_s = [int(row[0]) / 1e7 for row in csv.reader(file) if row[3] == "Write"]
times_s = [time - times_s[0] for time in times_s]
assert len(times_s) > FIRST_WRITES, f"only {len(times_s)} writes"
first = FIRST_WRITES / times_s[FIRST_WRITES]
later = sum(LATER_S[0] <= time < LATER_S[1] for time in times_s) / (LATER_S[1] - LATER_S[0])
print(f"first {FIRST_WRITES} writes: {first:.1f}/s; seconds {LATER_S[0]} to {LATER_S[1]}: {later:.2f}/s")
assert first >= 5 * later, "there is no cliff"

simulated = json.loads(subprocess.run(
    [IMBREX, "compare", "--trace", recording, "--systems", STACK, "--drive-scale", str(SCALE), "--json"],
    check=True, stdout=subprocess.PIPE, env={**os.environ, "NO_COLOR": "1"}).stdout)["runs"][0]
means_ms = [run["write_response_ms"]["mean"] for run in (emulated, simulated)]
print(f"mean response: {means_ms[0]:.2f} ms emulated, {means_ms[1]:.2f} ms simulated")
assert abs(means_ms[0] - means_ms[1]) <= 0.1 * means_ms[1], "the emulated mean is another one"
assert emulated["bands_rewritten"] > 0 and emulated["write_blocks"] == simulated["write_blocks"]
