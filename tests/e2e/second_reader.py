#!/usr/bin/env python3
"""tests/format_reader.py, which was written from docs/formats alone, and `imbrex inspect --json --all` find the same
superblocks, epochs, journals and maps: on an image that is new, one whose server was killed in the middle of its
work, the same with its newest data and journal block damaged, one that was recovered and closed, and one whose
server was killed after it had marked its last flush. So do they on images that older builds have made, with the versions
of `image` that have members; tests/format_label.py reads the labels of one, and one that no start writes so soon."""

import json
import pathlib
import random
import subprocess
import sys
import time

from _image_fixtures import unpack
from _kill import Killable
from _labels import read_label
from _nbd import Client
from _serving import IMBREX, SCRATCH, create

BLOCK = 4096
# Longer than a server waits before it marks the last flush.
IDLE_S = 1
SIZE = 64 << 20
TESTS = pathlib.Path(__file__).parent.parent
READER = TESTS / "format_reader.py"
CRATES = TESTS.parent / "crates"
# Small ones, so that victims are destaged, bands rewritten and checkpoints written.
TRANSLATION = ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=2MiB")
# The smallest buffer is 3.6 MiB: most bands take two stretches.
STRETCHES = ("translation.bands=uniform:4MiB..8MiB", "translation.persistent_cache=2MiB", "translation.merge_buffer=4MiB")
# A buffer that hands much down.
BUFFER = ("buffer.capacity=2MiB",)
# So short that most checkpoints are records behind a map.
RING = "translation.ring_blocks=24"
# The member of the top is the first.
STACKS = (
    ("pore", ("cache.capacity=2MiB", "cache.zone=2MiB", *TRANSLATION), {"ssd": "flash", "smr": "disk"}),
    ("smr-only", TRANSLATION, {"smr": "disk"}),
    ("smr-only", STRETCHES, {"smr": "disk"}),
    ("hwsr", BUFFER, {"log": "memory-buffer", "disk": "segments"}),
    ("s-block", BUFFER, {"log": "memory-buffer", "disk": "s-blocks"}),
    ("smr-only", (*TRANSLATION, RING), {"smr": "disk"}),
    ("s-block", (*BUFFER, RING), {"log": "memory-buffer", "disk": "s-blocks"}),
)
# Slices, which begin where their disks do.
SLICES = {"log": "ssd"}
# What stands in the description of an image of each member.
PORTS = {"flash": ("cache", "flash"), "disk": ("translation", "below"), "memory-buffer": ("buffer", "log"),
         "segments": ("translation", "disk"), "s-blocks": ("translation", "below")}
# What the readers say of each kind of member. What follows from the settings of a node stands in no format.
PARTS = {"flash": "cache", "disk": "translation", "memory-buffer": "memory_buffer", "segments": "segments",
         "s-blocks": "s_blocks"}
FROM_SETTINGS = {"regions", "slots"}


def inspected(data):
    done = subprocess.run([IMBREX, "inspect", data, "--json", "--all"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def file_of(data, name):
    return data / f"{SLICES.get(name, name)}.img"


def read_again(kind, path, *part):
    done = subprocess.run([sys.executable, READER, kind, path, *map(str, part)], capture_output=True, text=True)
    assert done.returncode == 0, f"format_reader.py {kind} {path}: {done.stderr}"
    return json.loads(done.stdout)


def compare(data, members, state):
    """Both readings, which must be the same; answers the one from the pages, by member."""
    document, theirs = inspected(data), {}
    found, expected = read_again("image", data / "image"), {part: document[part] for part in ("size_bytes", "image")}
    assert found == expected, f"{state}, image: {difference(found, expected)}"
    ours = {member["name"]: member for member in document["members"]}
    # Whose number each superblock bears: the low 16 bits of the set with the number and one added, without carry.
    numbers = {}
    for name, member in ours.items():
        low = [int(uuid[2:4] + uuid[:2], 16) for copy in member["superblocks"] if "set" in copy
               for uuid in (copy["set"], copy["member"])]
        numbers[name] = (low[0] ^ low[1]) - 1
    listed = {(member["node"], member["port"]): member["number"] for member in document["image"]["members"]}
    assert set(ours) == set(members), f"{state}: inspect has the members {sorted(ours)}"
    assert numbers == {name: listed[PORTS[members[name]]] for name in ours}, f"{state}: {numbers}, listed {listed}"
    for name, kind in members.items():
        part = (0, ours[name]["blocks"]) if name in SLICES else ()
        theirs[name] = read_again(kind, file_of(data, name), *part)
        # The map at the end is what all the rest leads to, so what differs first is the cause.
        for part in ("blocks", "superblocks", "journal", PARTS[kind]):
            found, expected = theirs[name][part], ours[name][part]
            if kind == "segments" and part == kind:
                expected = {key: value for key, value in expected.items() if key not in FROM_SETTINGS}
            assert found == expected, f"{state}, {name}, {part}: {difference(found, expected)}"
        assert set(ours[name]) - set(theirs[name]) <= {"name", "write_intent"}
    return theirs


def difference(found, expected):
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = [key for key in sorted({*found, *expected}) if found.get(key) != expected.get(key)]
        return f"{keys[0]}: {difference(found.get(keys[0]), expected.get(keys[0]))}"
    return f"the pages say {str(found)[:300]}, inspect says {str(expected)[:300]}"


def work(client, rng):
    """Requests of every kind, over the whole device and again and again at a few places."""
    for number in range(1500):
        blocks = rng.randint(1, 16)
        within = SIZE // BLOCK if number % 3 else 512
        offset, length = rng.randrange(within - blocks) * BLOCK, blocks * BLOCK
        choice = rng.random()
        if choice < 0.02:
            client.flush()
        elif choice < 0.05:
            client.trim(offset, length)
        elif choice < 0.08:
            client.zero(offset, length)
        else:
            client.write(offset, rng.randbytes(length), fua=choice < 0.1)


def in_ring(journal):
    """The records that are in the journal and not in its checkpoint."""
    return [record for record in journal["every_record"] if record["lsn"] is not None]


def damage(path, block):
    with open(path, "r+b") as file:
        file.seek(block * BLOCK + 100)
        byte = file.read(1)[0]
        file.seek(block * BLOCK + 100)
        file.write(bytes([byte ^ 0x10]))


def epoch(reading):
    return max(copy["epoch"] for copy in reading["superblocks"])


def check(stack, settings, members):
    data = create(stack, "64MiB", *settings)
    new = compare(data, members, "new")
    with Killable(stack, data) as server:
        work(Client(server.socket), random.Random(5))
        server.kill()
    killed = compare(data, members, "killed")
    for name, reading in killed.items():
        journal = reading["journal"]
        assert not any(copy["clean"] for copy in reading["superblocks"]), f"{name} was closed in order"
        assert journal["every_record"], f"the journal of {name} is empty"
        assert epoch(reading) > epoch(new[name]), f"{name} has the epoch it was made with"
        held = reading[PARTS[members[name]]]
        assert any(held.get(key, 0) > 0 for key in ("dirty_blocks", "logged_blocks", "used_ring_places", "segments")), held

    # The newest data of each journal and its newest block, as a power cut tears them.
    for name, reading in killed.items():
        journal = reading["journal"]
        with_data = [record for record in in_ring(journal) if record["data"] and record["lsn"] >= journal["mark"]]
        if with_data:
            damage(file_of(data, name), with_data[-1]["data"][0])
        else:
            newest = journal["ring_start"] + (journal["next"] - 1) % journal["ring_blocks"]
            damage(file_of(data, name), newest)
    torn = compare(data, members, "torn")
    for name, reading in torn.items():
        assert reading["journal"] != killed[name]["journal"], f"the damage to {name} was not noticed"

    with Killable(stack, data) as server:
        Client(server.socket).close()
    closed = compare(data, members, "closed")
    for name, reading in closed.items():
        assert any(copy["clean"] for copy in reading["superblocks"]), f"{name} was not closed in order"
        assert epoch(reading) > epoch(killed[name]), f"the recovery of {name} is of the epoch before it"

    with Killable(stack, data) as server:
        client = Client(server.socket)
        client.write(0, bytes([7]) * BLOCK * 16)
        client.flush()
        time.sleep(IDLE_S)
        server.kill()
    idle = compare(data, members, "idle")
    top = idle[next(iter(members))]["journal"]
    # Records without data may follow, of blocks that were written back meanwhile.
    newest = [record["lsn"] for record in in_ring(top) if record["data"]][-1]
    assert top["mark"] > newest, f"block {newest} was flushed, and all that is vouched for is before {top['mark']}"
    sizes = {name: reading["journal"]["records"] for name, reading in killed.items()}
    print(f"{stack}: the same in five states; records by kind when it was killed: {sizes}")
    return sum(reading["journal"]["checkpoint_records"] for reading in killed.values())


def check_fixture(version):
    """An image that was made when that version of `image` was the newest; its server was killed."""
    packed = CRATES / f"cli/tests/fixtures/image-{version}/killed.parts.xz"
    data = unpack(packed, SCRATCH / f"image-{version}")
    members = compare(data, {"ssd": "flash", "smr": "disk"}, f"fixture of version {version}")
    assert all(member["journal"]["every_record"] for member in members.values())
    found = read_again("image", data / "image")["image"]
    assert found["version"] == version
    listed = [(disk["node"], disk["number"], disk["is_labelled"]) for disk in found["labels"]]
    if version == 3:
        assert (listed, found["next_disk"]) == ([], None)
        return
    assert (listed, found["next_disk"]) == ([("smr", 1, True), ("ssd", 2, True)], 3)
    # Its creation and the start of the server that was killed.
    marks = [[1, 1834388], [2, 314459933]]
    for node, number, _ in listed:
        for copy, before in zip(read_label(data / f"{node}.img"), (marks[0], None)):
            entries = [{"disk": disk, "last": marks[1], "before": before} for disk in (1, 2)]
            expected = {"set": found["set"], "disk": number, "server": 0, "mark": marks[1], "from": marks[0], "entries": entries}
            assert copy == expected, f"{node}: the page says {copy}, expected {expected}"


def check_label():
    """A label with a disk that is away, of which the first copy is newer."""
    older, old, new = [6, 0x01020304], [0x107, 0xF00DCAFE], [0x10009, 0x80000001]
    away = {"disk": 0x103, "last": older, "before": None}

    def copy(mark, came_from, before):
        entries = [*({"disk": disk, "last": mark, "before": before} for disk in (1, 2)), away]
        return {"set": "00112233-4455-6677-8899-aabbccddeeff", "disk": 2, "server": 0, "mark": mark, "from": came_from, "entries": entries}

    found = read_label(CRATES / "core/tests/fixtures/format-1/label.img")
    assert found == [copy(new, old, old), copy(old, None, None)], found


behind_maps = sum(check(*parts) for parts in STACKS)
assert behind_maps > 0, "no checkpoint had records behind its map"
print(f"{behind_maps} records were behind maps")
for number in (3, 4):
    check_fixture(number)
check_label()
print("the same on images of versions 3 and 4 of the format, and the labels are what they were")
