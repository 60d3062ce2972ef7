#!/usr/bin/env python3
"""`imbrex trace mrc` counts, in one pass, exactly the hits that the simulated stack `lru` reports at each size. By default parts of
two recordings with trims and writes of zeroes, with `make soak` all that ship, and the CloudPhysics trace where it is."""

import json
import os
import pathlib
import subprocess

IMBREX = os.environ["IMBREX"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
# Beside the repository, where there are reference traces.
CLOUDPHYSICS = ROOT.parent / "shared" / "traces" / "cloudphysics_libcachesim.csv.zst"
PARTS = [("file-churn.imbrex.xz", 60_000), ("compile.imbrex.xz", 20_000)]
SIZES = 20
BLOCK = 4096


def answer(*arguments):
    return json.loads(subprocess.run([IMBREX, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout)


def sizes_of(trace, limit):
    """Sizes in blocks: below, at and above the longest request, at and above all that is touched, and by ratio between."""
    whole = answer("trace", "mrc", trace, *limit, "--json")
    longest, touched = whole["longest_request_blocks"], whole["touched_blocks"]
    ratio = (touched / longest) ** (1 / (SIZES - 4))
    between = [int(longest * ratio**step) for step in range(1, SIZES - 4)]
    sizes = sorted({max(longest // 2, 1), longest, longest + 1, *between, touched, touched + 1})
    return longest, sizes


def check(trace, limit):
    limit = ["--limit", limit] if limit else []
    longest, sizes = sizes_of(trace, limit)
    asked = ",".join(f"{size * BLOCK}B" for size in sizes)
    curve = answer("trace", "mrc", trace, *limit, "--sizes", asked, "--json")
    compared = 0
    for size, point in zip(sizes, curve["points"], strict=True):
        assert point["cache_blocks"] == size, (size, point)
        if size < longest:
            # Some requests go around it.
            assert point["read_hits"] is None and point["hit_percent"] is None, point
            continue
        report = answer("compare", "--trace", trace, *limit, "--systems", "lru", "--untimed",
                        "--set", "cache.mode=read-write", "--set", f"cache.capacity={size * BLOCK}B", "--json")
        run, = report["runs"]
        assert (run["read_blocks"], run["write_blocks"]) == (curve["read_blocks"], curve["write_blocks"]), run
        counted, simulated = (point["read_hits"], point["write_hits"]), (run["read_hits"], run["write_hits"])
        assert counted == simulated, f"{trace}, {size} blocks: {counted} in one pass, {simulated} simulated"
        compared += 1
    print(f"{pathlib.Path(trace).name}: equal at {compared} sizes from {longest} to {sizes[-1]} blocks, "
          f"{curve['touched_blocks']} distinct, {curve['read_blocks'] + curve['write_blocks']} accesses", flush=True)


if os.environ.get("IMBREX_SOAK") == "1":
    for recording in sorted(WORKLOADS.glob("*.imbrex*")):
        check(recording, None)
    if CLOUDPHYSICS.exists():
        check(CLOUDPHYSICS, None)
else:
    for name, limit in PARTS:
        check(WORKLOADS / name, limit)
