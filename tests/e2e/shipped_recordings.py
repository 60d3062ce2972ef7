#!/usr/bin/env python3
"""The recordings in `workloads/` are those its README describes, and on each of them write
amplification falls from LRU over LRU-band to PORE, with one exception. By default the short one is replayed, with
`make soak` all of them."""

import hashlib
import json
import os
import pathlib
import subprocess

IMBREX = os.environ["IMBREX"]
WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "workloads"
# With fewer rewrites an order says little.
LRU_REWRITES_MIN = 100
SHORTEST = "compile.imbrex.xz"
# Where LRU-band amplifies less than PORE, in the window that ships and on the whole recording.
LRU_BAND_IS_FIRST = [("hwsr-tpcc.imbrex.xz", "write-only")]


def answer(*arguments):
    return json.loads(subprocess.run([IMBREX, *map(str, arguments)], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout)


readme = (WORKLOADS / "README.md").read_text(encoding="utf-8")
recordings = sorted(WORKLOADS.glob("*.imbrex*"))
assert len(recordings) == 7, recordings
for recording in recordings:
    digest = hashlib.sha256(recording.read_bytes()).hexdigest()
    assert f"{digest}  {recording.name}" in readme, f"{recording.name} has SHA-256 {digest}"
    info = answer("trace", "info", recording, "--json")
    assert info["kind"] == "recorded", f"{recording.name} is {info['kind']}"
    for count in (info["requests"], info["read"]["requests"], info["write"]["requests"],
                  info["flushes"]):
        assert f"| {count:,} |" in readme, f"{recording.name}: {count:,} is not in the README"

    if recording.name != SHORTEST and os.environ["IMBREX_SOAK"] != "1":
        continue
    for mode in ("write-only", "read-write"):
        runs = answer("compare", "--trace", recording, "--set", f"cache.mode={mode}",
                      "--systems", "lru,lru-band,pore", "--json")["runs"]
        lru, lru_band, pore = (run["write_amplification"]["host"] for run in runs)
        assert runs[0]["bands_rewritten"] >= LRU_REWRITES_MIN, runs[0]["bands_rewritten"]
        order = (lru_band, pore, lru) if (recording.name, mode) in LRU_BAND_IS_FIRST else (pore, lru_band, lru)
        assert order[0] < order[1] < order[2], f"{recording.name}, {mode}: {pore}, {lru_band}, {lru}"
