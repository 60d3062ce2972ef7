#!/usr/bin/env python3
"""RAID 4SMR against a model of it that was written from its documents: random traces, each key with several values.
All counters of the array are equal, and so is where every block lies at the end. Where nothing is collected, the
movement of every disk is equal too. So is that of RAID 4."""

import collections
import dataclasses
import itertools
import json
import pathlib
import random
import subprocess

import _raid4smr
from _raid4smr import NEVER, Settings, Shape
from _serving import IMBREX, SCRATCH

BLOCK = 4096
# Slots that never end: a tiny drive has 192 blocks.
LARGE = {"": 1024, "tiny-cmr": 192}
FOLDER = pathlib.Path(SCRATCH) / "raid4smr"
REQUESTS = 300
HOMES = (2, 3, 4)
KEYS = [("append", "rule"), ("static", "rule"), ("static", "free")]
# How the traces of an experiment are made and replayed.
#   wild: any request, one at a time.
#   deep: several requests at once. Those for the same blocks are far apart, so that none waits for another one.
#   once, twice: as wild, so far apart that each collection is done; then all is read, once or twice. The difference
#         of these two says where every block lies after any number of collections.
MANNERS = {"wild": "queue_depth = 1", "deep": "queue_depth = 6",
           "once": "open_loop_speed = 1.0", "twice": "open_loop_speed = 1.0"}
GAP_S = 100
APART = 30
TAILS = {"once": 1, "twice": 2}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the arrays of one experiment share: bands, blocks of the traces, disks, and readings of model 2."""

    name: str
    track_blocks: int
    band_tracks: int
    blocks: int
    drive: str
    rest: str
    first_write: str


SETTINGS = [
    Setting("narrow", 4, 4, 300, "", "written", "rule"),
    Setting("wide", 8, 3, 500, "", "dense", "free"),
    Setting("drives", 5, 2, 180, "tiny-cmr", "written", "rule"),
]


def random_requests(choose, blocks, band):
    """Requests as (is it a write, block, blocks) without end: runs, hot spots, single places, some beyond a band."""
    spots = [choose.randrange(blocks) for _ in range(4)]
    next_of_run = 0
    while True:
        kind = choose.random()
        length = choose.randint(1, 4) if choose.random() < 0.9 else choose.randint(5, band * 4)
        if kind < 0.5:
            start = next_of_run if choose.random() < 0.95 else choose.randrange(blocks)
        elif kind < 0.8:
            start = choose.choice(spots) + choose.randint(-3, 3)
        else:
            start = choose.randrange(blocks)
        start %= blocks
        length = min(length, blocks - start)
        if kind < 0.5:
            next_of_run = start + length
        yield choose.random() < 0.7, start, length


def random_trace(setting, manner):
    """Requests as (is it a write, offset, bytes). Few of them begin and end with a block."""
    choose = random.Random(f"{setting.name} {manner.replace('twice', 'once')}")
    band = setting.track_blocks * setting.band_tracks
    made = []
    for is_write, start, length in random_requests(choose, setting.blocks, band):
        asked = range(start, start + length)
        recent = made[-APART:] if manner == "deep" else ()
        if any(asked.start < other.stop and other.start < asked.stop for _, other in recent):
            continue
        made.append((is_write, asked))
        if len(made) == REQUESTS:
            break
    trace = []
    for is_write, asked in made:
        offset, less = choose.choice((0, 0, 512, 3584)), choose.choice((0, 0, 512, 4095))
        trace.append((is_write, asked.start * BLOCK + offset, len(asked) * BLOCK - less))
    return trace + [(False, 0, setting.blocks * BLOCK)] * TAILS.get(manner, 0)


def blocks_of(trace):
    """Requests in blocks, as many as their size fills."""
    return [(is_write, offset // BLOCK, -(-length // BLOCK)) for is_write, offset, length in trace]


def disk(name, blocks, drive):
    what = f'drive = "{drive}"' if drive else f'media = "memory"\nsize = "{blocks * 4} KiB"\nsurvives = "power"'
    return f'[[node]]\nname = "{name}"\nkind = "disk"\n{what}\n'


def array_stack(name, settings, setting):
    """The stack file of an array. Homes have a band to spare, and blocks that make no band."""
    shape = settings.shape
    bands = -(-setting.blocks // (shape.band * shape.homes)) + 1
    homes = [f"home-{home}" for home in range(shape.homes)]
    text = f'name = "{name}"\n' + "".join(disk(home, bands * shape.band + 3, setting.drive) for home in homes)
    text += "".join(disk(name, LARGE[""], setting.drive) for name in ("data", "parity"))
    text += f"""[[node]]
name = "array"
kind = "raid4smr"
below = {{ homes = {json.dumps(homes)}, data = "data", parity = "parity" }}
track_blocks = {shape.track_blocks}
band_tracks = {shape.band_tracks}
placement = "{settings.placement}"
slots = "{settings.slots}"
data_capacity = "{settings.data_capacity * 4} KiB"
"""
    if settings.placement == "static":
        text += f'first_write = "{settings.first_write}"\n'
    if settings.collect_at:
        text += f"collect_at = {json.dumps(settings.collect_at)}\n"
    return text


def raid4_stack(name, disks, setting):
    members = [f"data-{number}" for number in range(disks)] + ["parity"]
    text = f'name = "{name}"\n' + "".join(disk(member, LARGE[""], setting.drive) for member in members)
    return text + f'[[node]]\nname = "array"\nkind = "raid4"\nbelow = {json.dumps(members)}\n'


def arrays(number, setting):
    """Of all combinations a third for each experiment, and those whose movement is compared for each."""
    made, large = [], LARGE[setting.drive]
    every = itertools.product(HOMES, KEYS, ("lowest", "fifo"), (None, 3, NEVER), (large, 1, 5, 12))
    for at, (homes, (placement, first_write), slots, collect_at, capacity) in enumerate(every):
        shape = Shape(homes, setting.track_blocks, setting.band_tracks)
        settings = Settings(shape, placement, first_write, slots, collect_at, capacity)
        # Three steps of the fastest key make one of the next slower ones, so each value meets each other one.
        if (at + at // 3 + at // 12) % len(SETTINGS) == number or (collect_at, capacity) == (NEVER, large):
            made.append(settings)
    return made


def run(setting, stacks, traces, shingled):
    """The runs of all stacks with all traces, by stack and trace."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in stacks.items():
        (FOLDER / f"{name}.toml").write_text(text)
    systems = json.dumps([f"{name}.toml" for name in stacks])
    experiment = [f'name = "{setting.name}"\ntitle = "{setting.name}"\nsystems = {systems}']
    for name, trace in traces.items():
        lines = [f"{at * GAP_S},{'RW'[is_write]},{offset},{length}"
                 for at, (is_write, offset, length) in enumerate(trace)]
        (FOLDER / f"{name}.csv").write_text("\n".join(lines) + "\n")
        experiment.append(f"""[[workload]]
path = "{name}.csv"
name = "{name}"
format = "csv"
columns = "time=1:s,op=2:R|W,off=3:bytes,len=4:bytes"
blocks = "size"
{MANNERS[name]}
""")
    experiment.append(f"""[movement]
model = 0
models = {{ {", ".join(f"{name} = 2" for name in shingled)} }}
track_blocks = {setting.track_blocks}
band_tracks = {setting.band_tracks}
rest = "{setting.rest}"
first_write = "{setting.first_write}"
""")
    path = FOLDER / f"{setting.name}.toml"
    path.write_text("\n".join(experiment))
    done = subprocess.run([IMBREX, "run", path, "--json"], capture_output=True, text=True, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    return {(made["system"], pathlib.Path(report["workload"]["path"]).stem): made
            for report in document.get("reports", [document]) for made in report["runs"]}


def played(model, trace):
    """The model after the requests of a trace."""
    for is_write, block, blocks in blocks_of(trace):
        (model.write if is_write else model.read)(block, blocks)
    return model


def differences(where, ours, expected):
    return [f"{where}: {key}: ours {ours.get(key)}, the model's {value}" for key, value in expected.items()
            if ours.get(key) != value]


def moved_otherwise(where, movement, model, setting, shingled):
    """Where the heads of a run were moved otherwise than in the model. Each disk has visits of one cause."""
    found = []
    for name, visits in model.visits.items():
        expected = _raid4smr.movement(visits, 2 if name in shingled else 0, setting.track_blocks, setting.band_tracks,
                                      setting.rest, setting.first_write)
        cause = "parity" if name == "parity" else "host"
        of_cause = f"visits of {cause}", f"block of {cause}"
        expected.update(zip(of_cause, (expected["visits"], expected["block"])))
        by_cause = movement[name]["visits_by_cause"][cause], movement[name]["by_cause"][cause]
        ours = {**movement[name], **dict(zip(of_cause, by_cause))}
        found += differences(f"{where}, {name}", ours, expected)
    assert set(movement) == set(model.visits), f"{where}: disks {sorted(movement)}"
    return found


def lies_elsewhere(where, movements, model, setting):
    """Where a second look at all blocks moves heads otherwise than in the model, after any number of collections."""
    model.visits = {name: [] for name in model.visits}
    model.read(0, setting.blocks)
    found = []
    for name, visits in model.visits.items():
        ours, expected = ([], [])
        for times, movement in enumerate(movements, 1):
            counted = _raid4smr.movement(visits * times, 0, setting.track_blocks, setting.band_tracks)
            for figures, made in (expected, counted), (ours, movement[name]):
                figures.append([made["visits"], made["block"], *made["discontinuities"], *made["reversals"]])
        ours, expected = ([after - before for before, after in zip(*figures)] for figures in (ours, expected))
        found += differences(f"{where}, {name}", {"a second look": ours}, {"a second look": expected})
    return found


def compare_arrays(number, setting, counted):
    """The differences of all arrays of one experiment."""
    systems = {f"{setting.name}-{at}": settings for at, settings in enumerate(arrays(number, setting))}
    traces = {manner: random_trace(setting, manner) for manner in MANNERS}
    shingled = [f"home-{home}" for home in range(max(HOMES))]
    stacks = {name: array_stack(name, settings, setting) for name, settings in systems.items()}
    runs = run(setting, stacks, traces, shingled)
    assert len(runs) == len(systems) * len(traces), f"{len(runs)} runs"
    found = []
    for (system, manner), made in runs.items():
        model = played(_raid4smr.Array(systems[system]), traces[manner])
        where = f"{setting.name}, {manner}, {systems[system]}"
        found += differences(where, made["nodes"]["array"], model.counters())
        counted.update(model.counters(), runs=1)
        if manner == "twice":
            movements = [runs[system, tail]["movement"] for tail in TAILS]
            found += lies_elsewhere(where, movements, model, setting)
            counted["arrays"] += 1
        if manner == "wild" and model.count["collections"] + model.count["forced_collections"] == 0:
            found += moved_otherwise(where, made["movement"], model, setting, shingled)
            counted["movement"] += 1
    return found


def compare_raid4(setting, counted):
    """The differences of arrays of level 4."""
    setting = dataclasses.replace(setting, name=f"raid4-{setting.name}")
    trace = random_trace(setting, "wild")
    disks_of = {f"{setting.name}-{disks}": disks for disks in HOMES}
    shingled = [f"data-{disk}" for disk in range(max(HOMES))]
    stacks = {name: raid4_stack(name, disks, setting) for name, disks in disks_of.items()}
    runs = run(setting, stacks, {"wild": trace}, shingled)
    assert len(runs) == len(disks_of), f"{len(runs)} runs"
    found = []
    for (system, _), made in runs.items():
        model = played(_raid4smr.Raid4(disks_of[system]), trace)
        found += moved_otherwise(system, made["movement"], model, setting, shingled)
        counted["raid4"] += 1
    return found


def main():
    counted, found = collections.Counter(), []
    for number, setting in enumerate(SETTINGS):
        found += compare_arrays(number, setting, counted)
        found += compare_raid4(setting, counted)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])
    assert all(counted[name] > 1000 for name in _raid4smr.COUNTERS), f"something hardly happens: {counted}"
    print(f"{counted['runs']} runs of {counted['arrays']} arrays as in the model, with {counted['collections']} "
          f"collections and {counted['forced_collections']} forced ones; all movement of {counted['movement']} "
          f"and {counted['raid4']} of RAID 4")


if __name__ == "__main__":
    main()
