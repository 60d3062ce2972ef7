#!/usr/bin/env python3
"""tests/format_reader.py, which was written from docs/formats alone, reads parity arrays (`raid4smr`). It and `imbrex inspect --json
--all` find the same places, slots, band rows and rows of parity on images that are new, killed in the middle of their work
and closed, with places in turn and by address. It finds each block, table and sum that has rotted, as `check --data` does, and
nothing where nothing has."""

import concurrent.futures
import json
import pathlib
import random
import re
import subprocess
import sys
import time

from _array import HOMES, PARITY_DRIVES, Array, parity_stack_file
from _load import Load, check
from _serving import IMBREX, create

READER = pathlib.Path(__file__).parent.parent / "format_reader.py"
BLOCK = 4096
BLOCKS = (16 << 20) // BLOCK
LOADS, LOAD_S = 3, 1
# Members as both readers know them. What they are called, and how long they are, stands in no format.
OF_MEMBER = ("port", "number", "state", "rebuilt_to", "is_partial")
FROM_SETTINGS = {"places_in_turn", "band_blocks", "band_rows", "slots", "blocks_in_slots", "unreadable_blocks"}


def inspected(data):
    done = subprocess.run([IMBREX, "inspect", data, "--json", "--all"], capture_output=True, text=True, check=True)
    return next(it["parity_array"] for it in json.loads(done.stdout)["members"] if "parity_array" in it)


def read_again(kind, data, array):
    placement = "append" if array["places_in_turn"] else "static"
    words = (placement, array["band_rows"], array["band_blocks"], array["slots"])
    done = subprocess.run([sys.executable, READER, kind, data, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"format_reader.py {kind}: {done.stderr}"
    return json.loads(done.stdout)


def compare(data, state):
    """Both readings, which must be the same. Answers that of `inspect`."""
    ours = inspected(data)
    theirs = read_again("parity-array", data, ours)
    members = [{key: member[key] for key in OF_MEMBER} for member in ours["members"]]
    places = sorted([block + at, place + at] for block, blocks, place in ours["places"] for at in range(blocks))
    expected = dict(ours, members=members, places=places)
    for key in FROM_SETTINGS:
        del expected[key]
    assert set(theirs) == set(expected), f"{state}: {sorted(set(theirs) ^ set(expected))}"
    for key, found in theirs.items():
        assert found == expected[key], f"{state}, {key}: the page says {str(found)[:300]}, inspect says {str(expected[key])[:300]}"
    return ours


def rot(data, array):
    """Some bits flip: blocks of each home, slots, sums of parity and a table. Answers what the second reader must find."""
    def flip(member, block):
        with open(data / f"{member}.img", "r+b") as file:
            file.seek(block * BLOCK + 100)
            byte = file.read(1)[0]
            file.seek(block * BLOCK + 100)
            file.write(bytes([byte ^ 0x10]))

    rng, rows, first = random.Random(8), set(), array["first_block"]
    blocks = []
    for column, runs in enumerate(array["held"]):
        held = [row for start, end in runs for row in range(start, end) if row not in rows]
        for row in rng.sample(held, 5):
            rows.add(row)
            blocks.append([column, row])
            flip([*HOMES, "data"][column], row + (first if column == len(HOMES) else 0))
    held = {row for runs in array["held"] for start, end in runs for row in range(start, end)}
    sums = sorted(rng.sample(sorted(held - rows), 5))
    for row in sums:
        flip("parity", first + row)
    flip("parity", array["first_table_block"])
    return {"blocks": sorted(blocks), "sums": sums, "tables": [[len(HOMES) + 1, 0]]}


def checked(data):
    """The same as `check --data` says it."""
    done = subprocess.run([IMBREX, "check", data, "--data", "--json"], capture_output=True, text=True)
    found = {"blocks": [], "sums": [], "tables": []}
    for it in json.loads(done.stdout)["findings"]:
        column = list(PARITY_DRIVES).index(it["member"])
        words = " ".join((it["structure"], it["problem"]))
        number = int(re.search(r"(?:row|table) (\d+)", words)[1])
        if it["structure"] != "data":
            found["tables"].append([column, number])
        elif it["member"] == "parity":
            found["sums"].append(number)
        else:
            found["blocks"].append([column, number])
    return {name: sorted(rows) for name, rows in found.items()}


def play(placement):
    # Disks whose tracks do not overlap, so that where a band lies is known without the drive.
    drives = dict.fromkeys(HOMES, "wd-4tb-7200")
    stack = parity_stack_file(f"second-{placement}", drives=drives, bands="arithmetic", band_tracks=10, placement=placement)
    data = create(stack, "16MiB")
    compare(data, f"{placement}, new")
    versions, doubtful, collections = [0] * BLOCKS, 0, 0
    for number in range(LOADS):
        load = Load(versions, (number + 1) << 32, random.Random(number))
        with Array(stack, data) as server, concurrent.futures.ThreadPoolExecutor(1) as threads:
            running = threads.submit(load.run, server.socket)
            try:
                time.sleep(LOAD_S)
                collections += server.facts()["collections"]
            finally:
                server.kill()
            unanswered = running.result()
        doubtful += compare(data, f"{placement}, killed, {number}")["writes_in_doubt"]
        with Array(stack, data) as server:
            check(server, versions, unanswered)
        array = compare(data, f"{placement}, closed, {number}")
        found = read_again("parity-array-data", data, array)
        assert found["blocks_compared"] > 0 and not found["blocks"] + found["sums"] + found["tables"], found
    assert doubtful > 0 and collections > 0, (doubtful, collections)
    expected = rot(data, array)
    found = read_again("parity-array-data", data, array)
    compared = found.pop("blocks_compared")
    assert found == expected, f"found {found}, expected {expected}"
    assert checked(data) == expected, f"check says {checked(data)}, expected {expected}"
    print(f"{placement}: the same in {1 + 2 * LOADS} states, {doubtful} writes in doubt, {collections} band rows collected; "
          f"{compared} blocks compared with their checksums")


for way in ("append", "static"):
    play(way)
