#!/usr/bin/env python3
"""RIDE takes at most the I/O time of SAC in four of five cells of the table in docs/systems/policies.md: on recordings, recipes and the
reference traces where they are, with caches of 1, 2 and 5 %, read-write and write-only. Prints the table's rows and counts."""

import json
import pathlib
import subprocess

from _captured import captured_traces, options_of
from _serving import IMBREX

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = ("read-write", "write-only")
POLICIES = ("ride", "sac", "most")
SIZES = ("1 %", "2 %", "5 %")
CAPTURED = ("cloudphysics", "msr_rsrch_1", "umass_Financial1_first10k", "hplajw_1992_1week.decoded")
RECIPES = ("hm", "mds", "prn", "src", "stg", "ts", "usr", "wdev", "web")
LEAST_SHARE = 0.8


def loads():
    recordings = [(trace.name.split(".")[0], "recorded", trace, []) for trace in sorted((ROOT / "workloads").glob("*.imbrex*"))]
    recipes = [(f"{name}-like", "synthetic", f"synthetic:{name}-like/4", []) for name in RECIPES]
    captured = [(trace.name.split(".")[0], "captured", trace, options_of(how)) for trace, how in captured_traces() if trace.name.startswith(CAPTURED)]
    return recordings + captured + recipes


def cells(trace, how, mode):
    printed = subprocess.run(
        [IMBREX, "compare", "--quiet", "--json", "--trace", str(trace), *how, "--systems", "ride", "--set", f"cache.mode={mode}",
         "--sweep", "cache.policy=" + ",".join(POLICIES), "--sweep", "cache.capacity=" + ",".join(SIZES)], check=True, stdout=subprocess.PIPE).stdout
    time_s = {}
    for run in json.loads(printed)["runs"]:
        time_s[run["parameters"]["cache.capacity"], run["parameters"]["cache.policy"]] = run["io_time_s"]["total"]
    assert len(time_s) == len(POLICIES) * len(SIZES), time_s
    return [[time_s[size, policy] for policy in POLICIES] for size in SIZES]


no_more = {"recorded": [], "captured": [], "synthetic": []}
for mode in MODES:
    for name, kind, trace, how in loads():
        row = cells(trace, how, mode)
        print(f"{mode} {name}, {kind}: " + " | ".join(" / ".join(f"{it:.4g}" for it in cell) for cell in row), flush=True)
        no_more[kind] += [ride <= sac for ride, sac, _ in row]

for kind, found in no_more.items():
    print(f"{kind}: RIDE takes no more than SAC in {sum(found)} of {len(found)} cells")
found = sum(no_more.values(), [])
assert sum(found) >= LEAST_SHARE * len(found), f"{sum(found)} of {len(found)} cells"
