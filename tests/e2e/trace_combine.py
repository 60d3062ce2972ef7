#!/usr/bin/env python3
"""`imbrex trace combine` against what docs/workloads.md says, computed here without anything of Imbrex: every order, every
placement, parts that join, the same bytes for the same seed, and memory that does not grow with the sources."""

import pathlib
import random
import resource
import subprocess

from _serving import IMBREX, SCRATCH

BLOCK = 4096
MEMORY_MIB = 16
FOLDER = pathlib.Path(SCRATCH) / "combine"


def make_source(number, requests):
    """A trace as (tick, offset, length), and its file."""
    choose = random.Random(number)
    made, tick = [], 0
    for at in range(requests):
        tick += choose.randrange(40) if at else 0
        made.append((tick, choose.randrange(4000) * 512, choose.randrange(1, 60) * 512))
    path = FOLDER / f"source{number}.csv"
    lines = [f"{128166386787582087 + tick},s{number},0,Write,{offset},{length},0" for tick, offset, length in made]
    path.write_text("\n".join(lines) + "\n")
    return made, path


def read(path):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    first = int(rows[0][0])
    return [(int(row[0]) - first, int(row[4]), int(row[5])) for row in rows]


def combine(paths, *arguments, output="out.csv", memory_mib=None):
    """What it said. With `memory_mib` it may have so much memory of its own."""
    def limit():
        if memory_mib:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_mib << 20, memory_mib << 20))

    command = [IMBREX, "trace", "combine", *map(str, paths), "-o", str(FOLDER / output), *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stderr


def orders(sources, paths):
    combine(paths, "--order", "merge")
    merged = [(tick, number, at) for number, made in enumerate(sources) for at, (tick, _, _) in enumerate(made)]
    expected = [sources[number][at] for _, number, at in sorted(merged)]
    assert read(FOLDER / "out.csv") == expected, "merge"

    combine(paths, "--order", "concatenate")
    behind, start = [], 0
    for made in sources:
        behind += [(start + tick, offset, length) for tick, offset, length in made]
        start = behind[-1][0]
    assert read(FOLDER / "out.csv") == behind, "concatenate"
    combine(paths, "--burst-requests", "all", output="all.csv")
    assert (FOLDER / "all.csv").read_bytes() == (FOLDER / "out.csv").read_bytes(), "a burst of all"

    for seed in ("1", "2"):
        combine(paths, "--order", "shuffle", "--seed", seed, output=f"shuffle{seed}.csv")
        shuffled = read(FOLDER / f"shuffle{seed}.csv")
        assert [row[0] for row in shuffled] == [row[0] for row in expected], "instants"
        assert sorted(row[1:] for row in shuffled) == sorted(row[1:] for row in expected), "permutation"
        assert [row[1:] for row in shuffled] != [row[1:] for row in expected], "order"
    assert (FOLDER / "shuffle1.csv").read_bytes() != (FOLDER / "shuffle2.csv").read_bytes()
    combine(paths, "--order", "shuffle", "--seed", "1", output="again.csv")
    assert (FOLDER / "shuffle1.csv").read_bytes() == (FOLDER / "again.csv").read_bytes(), "the same seed"


def bursts(sources, paths):
    """With every source at an offset of its own, the source of each request is seen in its address."""
    apart = 1 << 30
    shifted = [f"{path},offset={number}GiB" for number, path in enumerate(paths)]
    for length in (1, 7, 100):
        combine(shifted, "--burst-requests", str(length))
        rows = read(FOLDER / "out.csv")
        taken, now, last = [0] * len(sources), 0, [0] * len(sources)
        draws = []
        while rows:
            number = rows[0][1] // apart
            burst = min(length, len(sources[number]) - taken[number])
            for tick, offset, size in rows[:burst]:
                own = sources[number][taken[number]]
                now += own[0] - last[number]
                last[number] = own[0]
                assert (tick, offset - number * apart, size) == (now, own[1], own[2]), "a burst, its order and its gaps"
                taken[number] += 1
            rows = rows[burst:]
            draws.append(number)
        assert taken == [len(made) for made in sources]
        if length == 1:
            # All have requests left for long: each is drawn a quarter of the time, within five standard deviations.
            begin = draws[:1000]
            assert all(180 <= begin.count(number) <= 320 for number in range(4)), "uniform draws"


def placements(sources, paths):
    combine(paths, "--order", "concatenate", "--place", "concatenate", "--align", "3MiB")
    base, expected = 0, []
    for made in sources:
        expected += [(base + offset, length) for _, offset, length in made]
        base += -(-max(offset + length for _, offset, length in made) // (3 << 20)) * (3 << 20)
    assert [row[1:] for row in read(FOLDER / "out.csv")] == expected, "concatenate"

    combine(paths, "--order", "concatenate", "--place", "pack")
    place, expected = {}, []
    for number, made in enumerate(sources):
        for _, offset, length in made:
            for block in range(offset // BLOCK, -(-(offset + length) // BLOCK)):
                place.setdefault((number, block), len(place))
            for byte in range(offset, offset + length, 512):
                expected.append(place[number, byte // BLOCK] * BLOCK + byte % BLOCK)
    packed = read(FOLDER / "out.csv")
    assert [byte for _, offset, length in packed for byte in range(offset, offset + length, 512)] == expected, "pack"
    assert len(packed) > sum(map(len, sources)), "requests that were torn"


def parts(paths):
    combine(paths, "--order", "merge")
    whole = read(FOLDER / "out.csv")
    said = combine([FOLDER / "out.csv"], "--split", "3", "--by", "round-robin", output="part.csv")
    joined = []
    for number in (1, 2, 3):
        name = f"part-{number}.csv"
        assert read(FOLDER / name) == [(tick - whole[number - 1][0], *rest) for tick, *rest in whole[number - 1::3]]
        delay = next(line.split("delay=")[1] for line in said.splitlines() if "delay=" in line and name in line)
        joined.append(f"{FOLDER / name},delay={delay}")
    combine(joined, "--order", "merge", output="joined.csv")
    assert sorted(read(FOLDER / "joined.csv")) == sorted(whole), "parts join"


def memory():
    """1,600,000 requests would take 75 MiB if they were held."""
    load = "synthetic:uniform-random-write,limit=400000"
    for order in ("bursts", "merge", "shuffle"):
        combine([load] * 4, "--order", order, output="large.imbrex", memory_mib=MEMORY_MIB)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = [make_source(number, requests) for number, requests in enumerate((900, 700, 800, 1000))]
    sources, paths = [source for source, _ in made], [path for _, path in made]
    orders(sources, paths)
    bursts(sources, paths)
    placements(sources, paths)
    parts(paths)
    memory()


main()
