#!/usr/bin/env python3
"""A second reader of the formats, written from docs/formats alone.

    format_reader.py flash FILE            the member of a cache
    format_reader.py disk FILE             the member of a translation
    format_reader.py segments FILE         the member with the journal of a segment layout
    format_reader.py s-blocks FILE         the member of a translation by S-blocks, with `track` a size
    format_reader.py s-blocks-data FILE    the same with all data: blocks that are not what their checksums say
    format_reader.py memory-buffer FILE    the log of a write buffer
    format_reader.py array FILE            a member of an array of copies
    format_reader.py parity-array FOLDER PLACEMENT BAND_ROWS BAND_BLOCKS SLOTS
                                           the members of a parity array: home-0.img and so on, data.img, parity.img;
                                           the bands of its homes lie by arithmetic
    format_reader.py parity-array-data ... the same, closed in order, with all data: what is not what it must be
    format_reader.py image FILE            the description of an image
    format_reader.py journal FILE          any member with a journal, whatever the layer makes of it

A member may be a slice of FILE: FIRST BLOCKS behind FILE say which blocks.

It prints one JSON document: superblocks, checkpoint, journal records and map, or what an image is made
of, under the names that `imbrex inspect --json --all` uses. It knows nothing of the code of Imbrex.
"""

import json
import pathlib
import struct
import sys

from format_blocks import Bad, crc32c, DATA_BLOCKS_MAX, JOURNAL, Member, MEMBERSHIP, PAGE, PAYLOAD, SUPERBLOCK, unseal, uuid
from format_layers import SBlocks, array_map, buffer_map, segments_map
from format_parity import ParityArray

# The bit of the required features for a journal with copies on other members.
MIRRORED = 4
# The bit for a checkpoint with parts behind its first one.
PARTS = 16
# The bit for parts that are records.
RECORD_PARTS = 32
SUMS_PER_PAGE = PAYLOAD // 4
# Stands for no block in the parts of a checkpoint of a cache.
NOBODY = (1 << 64) - 1


def superblock(member, address):
    header, payload = unseal(member.block(address), SUPERBLOCK, address)
    if len(payload) != 96:
        raise Bad("length")
    words = struct.unpack_from("<4I16s4Q2HIQQQ", payload)
    pages = words[14] if words[2] & PARTS else max(1, -(-words[12] // PAYLOAD))
    return {
        "address": address,
        "generation": header["generation"],
        "member": uuid(header["member"]),
        "compatible_features": words[0],
        "read_only_features": words[1],
        "required_features": words[2],
        "layer": words[3],
        "set": uuid(words[4]),
        "epoch": words[5],
        "member_blocks": words[6],
        "area_blocks": words[7],
        "checkpoint_blocks": words[8],
        "checkpoint_place": words[9],
        "clean": words[10] != 0,
        "checkpoint_checksum": words[11],
        "checkpoint_bytes": words[12],
        "replay_from": words[13],
        "checkpoint_pages": pages,
    }


def without_address(copy):
    return {name: value for name, value in copy.items() if name != "address"}


def superblocks(member):
    """The four copies, and those that may count, the best first."""
    first = []
    for address in range(min(member.blocks, 1 << 18)):
        try:
            copy = superblock(member, address)
        except Bad:
            continue
        if address < 2 or copy["area_blocks"] - address in (1, 2):
            first.append(copy)
            break
    if not first:
        raise SystemExit("no superblock")
    area = first[0]["area_blocks"]
    copies, good = [], []
    for address in (0, 1, area - 2, area - 1):
        try:
            copies.append(superblock(member, address))
            good.append(without_address(copies[-1]))
        except Bad as problem:
            copies.append({"address": address, "problem": str(problem)})
    agreed = [copy for copy in good if good.count(copy) >= 2]
    chosen = max(agreed or good, key=lambda copy: copy["generation"])
    newer = [copy for copy in good if copy["generation"] > chosen["generation"]]
    newer.sort(key=lambda copy: -copy["generation"])
    return copies, [chosen] + newer


def end_blocks(root):
    """Blocks at each end of the area that are neither of a checkpoint nor of the ring."""
    return 3 if root["required_features"] & MIRRORED else 2


def mirror(member, root):
    """What the newer membership page says, of a mirrored journal."""
    if not root["required_features"] & MIRRORED:
        return None
    pages = []
    owner = bytes.fromhex(root["member"].replace("-", ""))
    for address in (2, root["area_blocks"] - 3):
        try:
            header, payload = unseal(member.block(address), MEMBERSHIP, address, owner)
        except Bad:
            continue
        copies = [{"number": number, "is_in": state != 0}
                  for number, state in struct.iter_unpack("<HH", payload)]
        if len(copies) == header["mark"] and header["sequence"] < header["mark"]:
            pages.append({"copy": header["sequence"], "changes": header["generation"], "copies": copies})
    if not pages:
        raise SystemExit("no membership page")
    return max(pages, key=lambda page: page["changes"])


def checkpoint(member, root):
    pages, newest = root["checkpoint_pages"], root["generation"]
    start = end_blocks(root) + root["checkpoint_place"] * root["checkpoint_blocks"]
    data = b""
    before, map_bytes = 0, None
    for page in range(pages):
        owner = bytes.fromhex(root["member"].replace("-", ""))
        header, payload = unseal(member.block(start + page), PAGE, start + page, owner)
        least = before if root["required_features"] & PARTS and page + 1 < pages else newest
        if not least <= header["generation"] <= newest or header["sequence"] != page:
            raise Bad("page of another checkpoint")
        if before not in (0, header["generation"]) and map_bytes is None:
            map_bytes = len(data)
        before = header["generation"]
        data += payload
    if len(data) != root["checkpoint_bytes"] or crc32c(data) != root["checkpoint_checksum"]:
        raise Bad("checksum of the checkpoint")
    if root["required_features"] & RECORD_PARTS:
        return data[:map_bytes], list(records_of(None, data[map_bytes:]))
    return data, []


def records_of(lsn, payload):
    at = 0
    while at < len(payload):
        kind, has_data, length, blocks = struct.unpack_from("<BBHI", payload, at)
        record = {"lsn": lsn, "kind": kind, "payload": payload[at + 8:at + 8 + length],
                  "data": None, "checksums": [], "missing": []}
        at += 8 + length
        if has_data:
            (start,) = struct.unpack_from("<Q", payload, at)
            record["data"] = [start, blocks]
            record["checksums"] = list(struct.unpack_from(f"<{blocks}I", payload, at + 8))
            at += 8 + 4 * blocks
        yield record


class Journal:
    """The superblock that counts, its checkpoint and the records after its map."""

    def __init__(self, member):
        self.member = member
        self.copies, candidates = superblocks(member)
        for root in candidates:
            try:
                self.checkpoint, self.parts = checkpoint(member, root)
                self.root = root
                break
            except Bad as bad:
                problem = bad
        else:
            raise SystemExit(f"checkpoint: {problem}")
        self.owner = bytes.fromhex(self.root["member"].replace("-", ""))
        end = end_blocks(self.root)
        self.mirror = mirror(member, self.root)
        self.ring_start = end + 2 * self.root["checkpoint_blocks"]
        self.ring_blocks = self.root["area_blocks"] - end - self.ring_start
        self.records = []
        self.next = self.mark = self.root["replay_from"]
        self.damaged_end = None
        if not self.root["clean"]:
            self.replay()
        for record in self.records:
            if record["lsn"] >= self.mark and record["data"]:
                start = record["data"][0]
                record["missing"] = [
                    index for index, checksum in enumerate(record["checksums"])
                    if crc32c(member.block(start + index)) != checksum]
        self.records = self.parts + self.records

    def replay(self):
        over = looked = False
        first = self.root["replay_from"]
        for lsn in range(first, first + self.ring_blocks):
            address = self.ring_start + lsn % self.ring_blocks
            block = self.member.block(address)
            header, bad = None, None
            try:
                header, payload = unseal(block, JOURNAL, address, self.owner)
            except Bad as found:
                bad = str(found)
            is_ours = header is not None and header["generation"] == self.root["epoch"]
            if is_ours:
                self.mark = max(self.mark, header["mark"])
            if is_ours and not over and header["sequence"] == lsn:
                self.records += records_of(lsn, payload)
                self.next = lsn + 1
                continue
            if is_ours and over and header["sequence"] > self.next and header["mark"] > self.next:
                raise SystemExit(f"journal block {self.next} is missing")
            over = True
            if is_ours and header["sequence"] == lsn:
                blocks = sum(record["data"][1] for record in records_of(lsn, payload) if record["data"])
            elif bad is not None and bad != "member" and any(block):
                blocks = DATA_BLOCKS_MAX
            else:
                looked = True
            if not looked:
                if self.damaged_end is None:
                    self.damaged_end = {"block": lsn, "data_blocks_max": 0}
                self.damaged_end["data_blocks_max"] += blocks

    def document(self):
        kinds = {}
        for record in self.records:
            name = str(record["kind"])
            kinds[name] = kinds.get(name, 0) + 1
        copies = {"mirror": self.mirror} if self.mirror else {}
        return {
            **copies,
            "generation": self.root["generation"],
            "checkpoint_bytes": len(self.checkpoint),
            "ring_start": self.ring_start,
            "ring_blocks": self.ring_blocks,
            "replay_from": self.root["replay_from"],
            "next": self.next,
            "mark": self.mark,
            "damaged_end": self.damaged_end,
            "records": kinds,
            "checkpoint_records": len(self.parts),
            "every_record": [dict(record, payload=record["payload"].hex())
                             for record in self.records],
        }


def cache_map(journal):
    """The dirty blocks of a cache: block, slot, checksum."""
    data = journal.checkpoint
    slots, mappings, clean, state = struct.unpack_from("<4Q", data)
    base = journal.root["area_blocks"]
    newest, older, owners = {}, {}, {}

    def place(lba, slot, checksum, missing):
        owners[slot] = lba
        if lba in newest:
            old = newest[lba]
            owners.pop(old[0], None)
            older.setdefault(lba, []).append(old)
        newest[lba] = (slot, checksum, missing)

    mapped = {}
    for index in range(mappings):
        lba, slot, checksum = struct.unpack_from("<QII", data, 32 + 16 * index)
        mapped[slot] = (lba, checksum)
    at = 32 + 16 * mappings + 8 * clean + state
    while at < len(data):
        (count,) = struct.unpack_from("<Q", data, at)
        for lba, slot, checksum in struct.iter_unpack("<QII", data[at + 8:at + 8 + 16 * count]):
            mapped[slot] = (lba, checksum)
        at += 8 + 16 * count
    for slot, (lba, checksum) in sorted(mapped.items()):
        if lba != NOBODY:
            place(lba, slot, checksum, False)
    for record in journal.records:
        if record["kind"] == 1:
            (lba,) = struct.unpack("<Q", record["payload"])
            for index, checksum in enumerate(record["checksums"]):
                slot = record["data"][0] + index - base
                place(lba + index, slot, checksum, index in record["missing"])
        else:
            for (slot,) in struct.iter_unpack("<I", record["payload"]):
                lba = owners.pop(slot, None)
                if lba is not None:
                    newest.pop(lba)
                    older.pop(lba, None)
    for lba, (slot, checksum, missing) in sorted(newest.items()):
        if not missing:
            continue
        good = [place for place in older.get(lba, []) if not place[2]]
        if not good:
            del newest[lba]
            owners.pop(slot, None)
        elif good[-1][0] not in owners:
            owners.pop(slot, None)
            newest[lba] = good[-1]
            owners[good[-1][0]] = lba
    return {
        "slots": slots,
        "clean_slots": clean,
        "dirty_blocks": len(newest),
        "dirty": [[lba, slot, checksum] for lba, (slot, checksum, _) in sorted(newest.items())],
    }


class Words:
    """A row of numbers of 8 bytes."""

    def __init__(self, data):
        self.words = [word for (word,) in struct.iter_unpack("<Q", data)]
        self.at = 0

    def next(self):
        self.at += 1
        return self.words[self.at - 1]

    def checksums(self, count):
        sums = []
        for _ in range(-(-count // 2)):
            word = self.next()
            sums += [word & 0xFFFFFFFF, word >> 32]
        return sums[:count]


class Translation:
    """The map of a translation: blocks of the device are keys."""

    def __init__(self, journal):
        words = Words(journal.checkpoint)
        if words.next() != 1:
            raise SystemExit("checkpoint of another version")
        self.log_blocks, self.blocks, bands = words.next(), words.next(), words.next()
        words.next()
        self.scratch_start = words.next()
        words.next()
        self.generation = words.next()
        self.head, self.tail = words.next(), words.next()
        self.logged, self.zeroed, self.lost = {}, set(), set()
        for _ in range(words.next()):
            packed, position = words.next(), words.next()
            lba, blocks = packed >> 24, packed & 0xFFFFFF
            for index, checksum in enumerate(words.checksums(blocks)):
                self.logged[lba + index] = (position + index, checksum)
        for ranges in (self.zeroed, self.lost):
            for _ in range(words.next()):
                start, blocks = words.next(), words.next()
                ranges.update(range(start, start + blocks))
        self.scratch = None
        held = words.next()
        if held:
            self.scratch = [words.next(), words.next(), words.next()]
            self.scratch.append(words.next() if held == 2 else self.scratch_start)
        self.bands, start = [], 0
        for _ in range(bands):
            table, pointer, home, blocks = (words.next() for _ in range(4))
            self.bands.append({"start": start, "blocks": blocks, "home": home,
                               "table": table, "pointer": pointer})
            start += blocks
        self.open = {}
        for _ in range(words.next()):
            band = words.next()
            self.open[band] = words.checksums(words.next())
        for record in journal.records:
            self.apply(record)

    def band_of(self, lba):
        for number, band in enumerate(self.bands):
            if lba < band["start"] + band["blocks"]:
                return number
        raise SystemExit("a block past the device")

    def forget(self, blocks):
        for lba in blocks:
            self.logged.pop(lba, None)
            self.zeroed.discard(lba)
            self.lost.discard(lba)

    def set_table(self, band, table):
        self.generation = max(self.generation, table >> 1)
        self.bands[band]["table"] = table
        self.open.pop(band, None)

    def apply(self, record):
        words = [word for (word,) in struct.iter_unpack("<Q", record["payload"])]
        kind = record["kind"]
        if kind == 1:
            lba, position = words
            for index, checksum in enumerate(record["checksums"]):
                if index not in record["missing"]:
                    self.forget([lba + index])
                    self.logged[lba + index] = (position + index, checksum)
            self.tail = max(self.tail, position + len(record["checksums"]))
        elif kind == 2:
            self.zero(words[0], words[0] + words[1])
        elif kind in (3, 8):
            band, start, blocks, table, place = words if kind == 8 else [*words, self.scratch_start]
            self.scratch = [band, start, blocks, place]
            self.set_table(band, table)
            whole = self.bands[band]
            whole["pointer"] = max(whole["pointer"], start + blocks)
            first = whole["start"] + start
            self.zeroed -= set(range(first, first + blocks))
        elif kind == 4:
            band, before, _ = words
            self.scratch = None
            first = self.bands[band]["start"]
            for lba in range(first, first + self.bands[band]["blocks"]):
                if lba in self.logged and self.logged[lba][0] < before:
                    del self.logged[lba]
        elif kind == 5:
            self.bypass(words[0], record)
        elif kind == 6:
            self.set_table(*words)
        elif kind == 7:
            blocks = range(words[0], words[0] + words[1])
            self.forget(blocks)
            self.lost.update(blocks)
        else:
            raise SystemExit(f"a record of kind {kind}")

    def zero(self, start, end):
        self.forget(range(start, end))
        for number, band in enumerate(self.bands):
            first, last = max(start, band["start"]), min(end, band["start"] + band["blocks"])
            readable = band["start"] + band["pointer"]
            if first >= last:
                continue
            amid = self.scratch and self.scratch[0] == number and sum(self.scratch[1:3]) < band["blocks"]
            if last >= readable and not amid:
                band["pointer"] = min(band["pointer"], first - band["start"])
                if number in self.open:
                    del self.open[number][band["pointer"]:]
            else:
                self.zeroed.update(range(first, min(last, readable)))

    def bypass(self, lba, record):
        number = self.band_of(lba)
        band = self.bands[number]
        offset = lba - band["start"]
        there = min(record["missing"], default=len(record["checksums"]))
        if offset > band["pointer"] or there == 0:
            return
        self.forget(range(lba, lba + there))
        sums = (self.open.get(number, []) + [0] * offset)[:offset]
        self.open[number] = sums + record["checksums"][:there]
        band["pointer"] = max(band["pointer"], offset + there)

    def document(self):
        return {
            "log_blocks": self.log_blocks,
            "device_blocks": self.blocks,
            "generation": self.generation,
            "head": self.head,
            "tail": self.tail,
            "logged_blocks": len(self.logged),
            "zeroed_blocks": len(self.zeroed),
            "lost_blocks": len(self.lost),
            "band_count": len(self.bands),
            "open_bands": len(self.open),
            "logged": [[lba, *place] for lba, place in sorted(self.logged.items())],
            "zeroed": runs(self.zeroed),
            "lost": runs(self.lost),
            "scratch": self.scratch,
            "bands": [[band["home"], band["blocks"], band["table"], band["pointer"]]
                      for band in self.bands],
            "open": [[band, sums] for band, sums in sorted(self.open.items())],
        }


def runs(blocks):
    """Block numbers as runs: first block and end."""
    found = []
    for block in sorted(blocks):
        if found and found[-1][1] == block:
            found[-1][1] += 1
        else:
            found.append([block, block + 1])
    return found


def image(path):
    """The description of an image, the stack aside."""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, nodes, owner, size, stack, length, body_crc, header_crc = struct.unpack_from("<8sII16sQQQII", data)
    body, at = data[64:], stack
    if magic != b"IMBREXIM" or version not in (3, 4) or len(body) != length:
        raise SystemExit("no description")
    if crc32c(data[:60]) != header_crc or crc32c(body) != body_crc:
        raise SystemExit("checksum of the description")

    def take(form):
        nonlocal at
        words = struct.unpack_from(form, body, at)
        at += struct.calcsize(form)
        return words if len(words) > 1 else words[0]

    disks, members = [], []
    for _ in range(nodes):
        name, blocks = take("<IQ")
        replacement = take("<H")
        disks.append({"name": take(f"{name}s").decode(), "blocks": blocks, "replacement": replacement})
    next_member, count = take("<HH")
    for _ in range(count):
        number = take("<H")
        node, port = (take(f"{take('<H')}s").decode() for _ in range(2))
        members.append({"number": number, "node": node, "port": port})
    labels, next_disk = [], None
    if version > 3:
        next_disk, count = take("<HH")
        for _ in range(count):
            number, labelled = take("<HH")
            labels.append({"number": number, "is_labelled": labelled == 1, "node": take(f"{take('<H')}s").decode()})
    if at != len(body):
        raise SystemExit("bytes follow the last entry")
    return {"size_bytes": size, "image": {"version": version, "set": uuid(owner), "disks": disks,
                                          "members": members, "next_member": next_member,
                                          "labels": labels, "next_disk": next_disk}}


def main():
    kind, path, *part = sys.argv[1:]
    if kind == "image":
        print(json.dumps(image(path), indent=1, sort_keys=True))
        return
    if kind.startswith("parity-array"):
        folder = pathlib.Path(path)
        journal = Journal(Member(folder / "data.img"))
        array = ParityArray(journal, folder, part[0], *map(int, part[1:]))
        found = array.wrong() if kind == "parity-array-data" else array.document(runs)
        print(json.dumps(found, indent=1, sort_keys=True))
        return
    journal = Journal(Member(path, *map(int, part)))
    document = {"blocks": journal.member.blocks, "superblocks": journal.copies,
                "journal": journal.document()}
    if kind == "flash":
        document["cache"] = cache_map(journal)
    elif kind == "disk":
        document["translation"] = Translation(journal).document()
    elif kind == "segments":
        document["segments"] = segments_map(journal)
    elif kind == "s-blocks":
        document["s_blocks"] = SBlocks(journal).document()
    elif kind == "s-blocks-data":
        document = {"wrong_blocks": SBlocks(journal).wrong_blocks()}
    elif kind == "array":
        document["array"] = array_map(journal)
    elif kind == "memory-buffer":
        document["memory_buffer"] = buffer_map(journal)
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
