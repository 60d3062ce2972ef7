#!/usr/bin/env python3
"""`imbrex check --data` and `inspect` read images of a parity array (`raid4smr`): new, closed, and after `kill -9`, with its homes
given in turn and by address. A flipped bit of a home, a slot and the parity is found, and a home that is not there is a note.
What `check` says of where blocks are is right: the bytes that it names are those that the host has written."""

import json
import os
import random
import subprocess

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

BLOCK = 4096
SIZE = 64 << 20
BLOCKS = SIZE // BLOCK
# Bands of 400 blocks, so that band rows are collected again and again.
DISKS = (("home-0", "st5000as0011"), ("home-1", "st5000as0011"), ("home-2", "st5000as0011"),
         ("data", "wd-4tb-7200"), ("parity", "wd-4tb-7200"))
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
# How often the server is killed; the soak takes both placements.
KILLS = 6 if IS_SOAK else 2


def stack_file(placement):
    text = "".join(f'[[node]]\nname = "{name}"\nkind = "disk"\ndrive = "{drive}"\n\n' for name, drive in DISKS)
    text += '[[node]]\nname = "array"\nkind = "raid4smr"\nbands = "disk"\ntrack_blocks = 20\nband_tracks = 20\n'
    text += f'placement = "{placement}"\n'
    text += 'below = { homes = ["home-0", "home-1", "home-2"], data = "data", parity = "parity" }\n'
    path = SCRATCH / f"parity-{placement}.toml"
    path.write_text(f'name = "parity-{placement}"\n\n{text}')
    return path


def check(data, *options):
    done = subprocess.run([IMBREX, "check", data, "--json", *options], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stdout + done.stderr
    document = json.loads(done.stdout)
    return [f"{it['member']}: {it['structure']}: {it['problem']}" for it in document["findings"]], document["notes"]


def inspect(data):
    done = subprocess.run([IMBREX, "inspect", data, "--json", "--all"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["findings"] == [], document["findings"]
    arrays = [member["parity_array"] for member in document["members"] if "parity_array" in member]
    assert len(arrays) == 1, document
    return arrays[0]


def is_clean(data, state):
    for options in ((), ("--data",)):
        found, notes = check(data, *options)
        assert found == [], f"{state}: {found[:5]}, {notes}"
    return notes


def work(client, rng, known, count):
    """Writes here and there, much of it again and again; what the host knows is in `known`."""
    for number in range(count):
        blocks = rng.randint(1, 16)
        within = BLOCKS if number % 3 == 0 else 2000
        first = rng.randrange(within - blocks)
        choice = rng.random()
        if choice < 0.03:
            client.flush()
        elif choice < 0.08:
            client.trim(first * BLOCK, blocks * BLOCK)
            known.update((block, bytes(BLOCK)) for block in range(first, first + blocks))
        else:
            bytes_ = rng.randbytes(blocks * BLOCK)
            client.write(first * BLOCK, bytes_, fua=choice < 0.11)
            parts = (bytes_[at * BLOCK:(at + 1) * BLOCK] for at in range(blocks))
            known.update(zip(range(first, first + blocks), parts))


def flip(path, block):
    with open(path, "r+b") as file:
        file.seek(block * BLOCK + 100)
        byte = file.read(1)[0]
        file.seek(block * BLOCK + 100)
        file.write(bytes([byte ^ 0x10]))


def members(data):
    done = subprocess.run([IMBREX, "inspect", data, "--json"], capture_output=True, text=True, check=True)
    return {member["name"]: member for member in json.loads(done.stdout)["members"]}


def damage(data):
    """A bit of each kind of block. A row of which the parity is flipped tells what stands in it; one of that is next."""
    parity = members(data)["parity"]
    array = inspect(data)
    # Behind the journal, the log, which is as long as a ring with what lists the copies, and the tables of checksums.
    first_block, first_table = array["first_block"], array["first_table_block"]
    assert first_table == parity["superblocks"][0]["area_blocks"] + parity["journal"]["ring_blocks"] + 2, array
    rows = {}
    for name, held in zip(("home-0", "home-1", "home-2", "data"), array["held"]):
        of_name = [row for start, end in held for row in range(start, end) if row not in rows]
        rows[of_name[len(of_name) // 2]] = name
    for row in rows:
        flip(data / "parity.img", first_block + row)
    found, _ = check(data, "--data")
    begins = [f"parity: data: row {row}, at block {first_block + row} of the member: it is not the sum of " for row in sorted(rows)]
    assert len(found) == len(begins) and all(map(str.startswith, found, begins)), found
    for row in rows:
        flip(data / "parity.img", first_block + row)
    assert check(data, "--data")[0] == []
    places = []
    for (row, name), words in zip(sorted(rows.items()), found):
        own = [part for part in words.split(" sum of ")[1].split(", ") if part.endswith(f" of {name}")]
        assert len(own) == 1, f"{name}, row {row}: {words}"
        places.append((data / f"{name}.img", int(own[0].split()[1])))
    for place in places:
        flip(*place)
    wrong = [f"{name}: data: row {row}, at block {block} of the member: its data does not match its checksum"
             for (row, name), (_, block) in zip(sorted(rows.items()), places)]
    assert check(data, "--data")[0] == wrong, check(data, "--data")[0]
    assert check(data)[0] == [], "only the data is wrong"
    for place in places:
        flip(*place)
    # A table of checksums on either disk: the other one has it.
    for name in ("data", "parity"):
        flip(data / f"{name}.img", first_table)
        found, _ = check(data, "--data")
        assert len(found) == 1 and found[0].startswith(f"{name}: table of checksums: table 0: "), found
        flip(data / f"{name}.img", first_table)
    # The checkpoint of both copies of the journal.
    for name in ("data", "parity"):
        superblock = members(data)[name]["superblocks"][0]
        flip(data / f"{name}.img", 3 + superblock["checkpoint_place"] * superblock["checkpoint_blocks"])
    found, _ = check(data)
    assert [words[:words.rindex(": ")].split(": ")[:2] for words in found[:2]] == [["data", "checkpoint"], ["parity", "checkpoint"]], found


def without_a_home(data):
    home = data / "home-1.img"
    away = data.parent / "home-1.away"
    home.rename(away)
    found, notes = check(data, "--data")
    assert found == [], found
    assert any(note.startswith("home-1: it is not there: ") for note in notes), notes
    assert any("home-1: member 1 of the array: the next start records it out" in note for note in notes), notes
    other = data / "home-2.img"
    other.rename(data.parent / "home-2.away")
    found, _ = check(data, "--data")
    assert len(found) == 1 and found[0].startswith("home-1, home-2: array: each of them lacks"), found
    (data.parent / "home-2.away").rename(other)
    away.rename(home)


def main():
    rng = random.Random(11)
    for placement in ("append", "static") if IS_SOAK else ("append",):
        stack = stack_file(placement)
        data = create(stack, "64MiB")
        is_clean(data, "new")
        known, noted, in_doubt, collecting = {}, 0, 0, 0
        for at in range(KILLS):
            with Killable(stack, data) as server:
                work(Client(server.socket), rng, known, rng.randint(50, 600))
                server.kill()
            notes = is_clean(data, f"{placement}, killed, {at}")
            array = inspect(data)
            in_doubt += array["writes_in_doubt"]
            collecting += array["is_collecting"]
            noted += any("may be on its members or not" in note for note in notes)
            assert (array["writes_in_doubt"] > 0) == any("may be on its members" in note for note in notes), notes
        without_a_home(data)
        with Killable(stack, data) as server:
            client = Client(server.socket)
            work(client, rng, known, 300)
            for block, expected in rng.sample(sorted(known.items()), 200):
                assert client.read(block * BLOCK, BLOCK) == expected, f"block {block}"
            client.close()
        is_clean(data, f"{placement}, closed")
        array = inspect(data)
        assert array["writes_in_doubt"] == 0 and array["blocks_in_slots"] > 0 and array["live_blocks"] > 0, array
        written = sum(any(bytes_) for bytes_ in known.values())
        assert array["live_blocks"] == written, f"{array['live_blocks']} blocks are live, and {written} have data"
        without_a_home(data)
        damage(data)
        print(f"{placement}: {in_doubt} writes in doubt in {noted} of {KILLS} killed images, {collecting} while a band row moved; "
              f"{array['live_blocks']} blocks, {array['blocks_in_slots']} in slots")


main()
