#!/usr/bin/env python3
"""`imbrex trace mrc` counts, in one pass, exactly the hits that the simulated stack `lru` reports at each size: on requests that are
drawn, with trims, and on parts of two recordings. With `make soak` on all recordings that ship, and on the CloudPhysics trace
where it is."""

import json
import os
import pathlib
import random
import subprocess

IMBREX = os.environ["IMBREX"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
# Beside the repository, where there are reference traces.
CLOUDPHYSICS = ROOT.parent / "shared" / "traces" / "cloudphysics_libcachesim.csv.zst"
PARTS = [("file-churn.imbrex.xz", 60_000), ("compile.imbrex.xz", 20_000)]
# The smallest is below the longest request and is not compared: twenty are.
SIZES = 21
BLOCK = 4096
DRAWN = pathlib.Path(os.environ["IMBREX_TMP"]) / "drawn.csv"
DRAWN_MAP = ["--map", "op=op:R|W|T,off=off,len=len"]


def draw():
    """Short requests, half of them to a tenth of the blocks; of twenty one trims up to 60 blocks, rarely most."""
    choose = random.Random(35)
    lines = ["op,off,len"]
    for _ in range(20_000):
        kind = choose.choices("RWT", (6, 13, 1))[0]
        first = choose.randrange(choose.choice((300, 3000)))
        blocks = choose.randint(1, 8) if kind != "T" else choose.choice((60, 60, 60, 2500))
        lines.append(f"{kind},{first * BLOCK},{blocks * BLOCK}")
    DRAWN.write_text("\n".join(lines) + "\n")


def answer(*arguments):
    return json.loads(subprocess.run([IMBREX, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout)


def sizes_of(trace, options):
    """Sizes in blocks: below, at and above the longest request, at and above all that is touched, and by ratio between."""
    whole = answer("trace", "mrc", trace, *options, "--json")
    longest, touched = whole["longest_request_blocks"], whole["touched_blocks"]
    ratio = (touched / longest) ** (1 / (SIZES - 4))
    between = [int(longest * ratio**step) for step in range(1, SIZES - 4)]
    sizes = sorted({max(longest // 2, 1), longest, longest + 1, *between, touched, touched + 1})
    return longest, sizes


def check(trace, *options):
    longest, sizes = sizes_of(trace, options)
    asked = ",".join(f"{size * BLOCK}B" for size in sizes)
    curve = answer("trace", "mrc", trace, *options, "--sizes", asked, "--json")
    compared = 0
    for size, point in zip(sizes, curve["points"], strict=True):
        assert point["cache_blocks"] == size, (size, point)
        if size < longest:
            # Some requests go around it.
            assert point["read_hits"] is None and point["hit_percent"] is None, point
            continue
        report = answer("compare", "--trace", trace, *options, "--systems", "lru", "--untimed",
                        "--set", "cache.mode=read-write", "--set", f"cache.capacity={size * BLOCK}B", "--json")
        run, = report["runs"]
        assert (run["read_blocks"], run["write_blocks"]) == (curve["read_blocks"], curve["write_blocks"]), run
        counted, simulated = (point["read_hits"], point["write_hits"]), (run["read_hits"], run["write_hits"])
        assert counted == simulated, f"{trace}, {size} blocks: {counted} in one pass, {simulated} simulated"
        compared += 1
    print(f"{pathlib.Path(trace).name}: equal at {compared} sizes from {longest} to {sizes[-1]} blocks, "
          f"{curve['touched_blocks']} distinct, {curve['read_blocks'] + curve['write_blocks']} accesses", flush=True)


draw()
check(DRAWN, *DRAWN_MAP)
if os.environ["IMBREX_SOAK"] == "1":
    for recording in sorted(WORKLOADS.glob("*.imbrex*")):
        check(recording)
    if CLOUDPHYSICS.exists():
        check(CLOUDPHYSICS)
else:
    for name, limit in PARTS:
        check(WORKLOADS / name, "--limit", limit)
