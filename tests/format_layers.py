"""What segment layouts, translations by S-blocks and write buffers keep, from docs/formats alone: for tests/format_reader.py,
whose journals it takes apart. It knows nothing of the code of Imbrex."""

import struct

from format_blocks import PAYLOAD, TABLE, crc32c, unseal

# The bit of the required features for tables of checksums.
CHECKSUMS = 8
# Words of a page of them, and the CRC-32C of a block of zeroes.
WORDS = PAYLOAD // 4
ZERO_SUM = 0x98F94189


def word_of(block):
    word = crc32c(block) ^ ZERO_SUM
    return word - 2 if word >= 0xFFFFFFFE else word


def segments_map(journal):
    """The noted slots of a segment layout, in the order in which they were noted."""
    words = (word for (word,) in struct.iter_unpack("<Q", journal.checkpoint))
    if next(words) != 1:
        raise SystemExit("checkpoint of another version")
    names = ("block", "region_tracks", "segments", "first_block", "kappa", "noted_slots")
    head = {name: next(words) for name in names}
    if journal.root["required_features"] & 8:
        head["blank_page"] = next(words)
    noted, torn = [], set()

    def note(kind, payload):
        slot, segment = payload[:2]
        if kind == 2:
            written = [block for block in range(head["region_tracks"]) if payload[2 + block // 64] >> block % 64 & 1]
            noted.append({"slot": slot, "segment": segment, "written": written})
        else:
            noted.append({"slot": slot, "segment": segment, "zeroed_segments": payload[2]})

    for _ in range(head["noted_slots"]):
        kind, length = next(words), next(words)
        note(kind, [next(words) for _ in range(length)])
    for record in journal.records:
        payload = [word for (word,) in struct.iter_unpack("<Q", record["payload"])]
        if record["kind"] == 1:
            torn |= {payload[0]} if record["missing"] else set()
        elif record["kind"] == 4:
            noted = [known for known in noted if known["slot"] != payload[0]]
        elif payload[0] in torn:
            torn.discard(payload[0])
        else:
            note(record["kind"], payload)
    return {**head, "noted_slots": len(noted), "noted": noted}


class SBlocks:
    """The regions of a translation by S-blocks."""

    def __init__(self, journal):
        data, at, self.sums = journal.checkpoint, 24, {}
        version, regions, self.block, self.segment, self.places, self.segments = struct.unpack_from("<6I", data)
        if version != 1:
            raise SystemExit("checkpoint of another version")
        self.journal, self.has_sums = journal, bool(journal.root["required_features"] & CHECKSUMS)
        self.regions, self.rings = [], []
        for _ in range(regions):
            _, slots, positions, tail, used, count = struct.unpack_from("<6H", data, at)
            owners = [None if owner == 65535 else owner
                      for owner in struct.unpack_from(f"<{positions}H", data, at + 12)]
            at += 12 + 2 * positions
            region = {"slots": slots, "tail": tail, "used": used, "owners": owners, "ring": {}}
            if self.has_sums:
                region["tables"] = list(struct.unpack_from(f"<{positions}Q", data, at))
                at += 8 * positions
            for _ in range(count):
                place, block, parts = struct.unpack_from("<IIQ", data, at)
                region["ring"][place] = [block, parts]
                at += 16
                if self.has_sums:
                    held = [part for part in range(64) if parts >> part & 1]
                    self.sums.update({(len(self.regions), place, part): sum for part, sum in
                                      zip(held, struct.unpack_from(f"<{len(held)}I", data, at))})
                    at += 4 * len(held)
            self.regions.append(region)
        if at != len(data):
            raise SystemExit("bytes follow the last region")
        # The tables of all positions, then each region and its ring behind it.
        self.pages = -(-self.segment // WORDS)
        start = journal.root["area_blocks"]
        if self.has_sums:
            start += self.pages * sum(len(region["owners"]) for region in self.regions)
        for region in self.regions:
            self.rings.append(start + len(region["owners"]) * self.segment)
            start = self.rings[-1] + self.places * self.block
        for record in journal.records:
            self.apply(record)
        for region in self.regions:
            while region["used"] > region["slots"] and region["owners"][region["tail"]] is None:
                region["tail"] = (region["tail"] + 1) % len(region["owners"])
                region["used"] -= 1

    def leave_ring(self, region, first, end):
        per_segment = self.segment // self.block
        region["ring"] = {place: held for place, held in region["ring"].items()
                          if not first * per_segment <= held[0] < end * per_segment}

    def apply(self, record):
        kind, payload = record["kind"], record["payload"]
        (number,) = struct.unpack_from("<I", payload)
        region = self.regions[number]
        owners = region["owners"]
        if kind in (1, 2):
            segment, position, used = struct.unpack_from("<3H", payload, 4)
            owners[:] = [None if owner == segment else owner for owner in owners]
            owners[position] = segment
            if self.has_sums:
                (region["tables"][position],) = struct.unpack_from("<Q", payload, 10)
            region["tail"] = (position - used) % len(owners)
            region["used"] = used + 1
            if kind == 1:
                self.leave_ring(region, segment, segment + 1)
        elif kind == 3:
            self.ring(region, number, struct.unpack_from("<I", payload, 4)[0], record)
        else:
            first, count = struct.unpack_from("<2H", payload, 4)
            owners[:] = [None if owner is not None and first <= owner < first + count else owner for owner in owners]
            self.leave_ring(region, first, first + count)

    def ring(self, region, number, block, record):
        start = record["data"][0] - self.rings[number]
        place, first = divmod(start, self.block)
        parts = sum(1 << first + index for index in range(len(record["checksums"])) if index not in record["missing"])
        if not parts:
            return
        held = region["ring"].get(place, [block, 0])
        # Where another block was, that one has left.
        held = held if held[0] == block else [block, 0]
        others = {other: [there, mask & ~parts if there == block else mask]
                  for other, (there, mask) in region["ring"].items() if other != place}
        region["ring"] = {other: found for other, found in others.items() if found[1]}
        region["ring"][place] = [block, held[1] | parts]
        if self.has_sums:
            self.sums.update({(number, place, first + index): checksum
                              for index, checksum in enumerate(record["checksums"]) if parts >> first + index & 1})

    def wrong_blocks(self):
        """Blocks of the disk that are not what their checksums say."""
        wrong, number = [], 0
        for at, region in enumerate(self.regions):
            positions = len(region["owners"])
            start = self.rings[at] - positions * self.segment
            for position, owner in enumerate(region["owners"]):
                words = self.table(number + position, region["tables"][position]) if owner is not None else []
                wrong += [start + position * self.segment + index for index, word in enumerate(words)
                          if word != word_of(self.journal.member.block(start + position * self.segment + index))]
            number += positions
            for place, (_, parts) in region["ring"].items():
                for part in (part for part in range(64) if parts >> part & 1):
                    block = self.rings[at] + place * self.block + part
                    if crc32c(self.journal.member.block(block)) != self.sums[at, place, part]:
                        wrong.append(block)
        return wrong

    def table(self, number, generation):
        """The words of the table of a position."""
        words = []
        for index in range(self.pages):
            address = self.journal.root["area_blocks"] + number * self.pages + index
            block = self.journal.member.block(address)
            header, payload = unseal(block, TABLE, address, self.journal.owner)
            if (header["generation"], header["sequence"]) != (generation, index):
                raise SystemExit(f"the page at block {address} is another one")
            words += struct.unpack(f"<{len(payload) // 4}I", payload)
        return words

    def document(self):
        found = [{"tail": region["tail"], "used": region["used"], "owners": region["owners"],
                  "ring": [[place, *held] for place, held in sorted(region["ring"].items())],
                  **({"tables": region["tables"]} if self.has_sums else {})}
                 for region in self.regions]
        return {
            "block_blocks": self.block,
            "segment_blocks": self.segment,
            "segments": self.segments,
            "regions": len(found),
            "ring_places": self.places,
            "valid_segments": sum(owner is not None for region in found for owner in region["owners"]),
            "log_positions": sum(region["used"] for region in found),
            "used_ring_places": sum(len(region["ring"]) for region in found),
            "every_region": found,
        }


MEMBER_STATES = ("in", "out", "blank", "rebuilding", "returning")


def member_of_array(data):
    """Which member an entry of 13 bytes is of, and what it says."""
    column, port, number, state, rows = struct.unpack("<BBHBQ", data)
    name = MEMBER_STATES[state]
    before = rows if name in ("rebuilding", "returning") else None
    return column, {"port": port, "number": number, "state": name, "rebuilt_to": before,
                    "is_partial": name == "out" and rows == 1}


def array_map(journal):
    """The members of an array of copies, and which regions and rows are not as they should be."""
    data = journal.checkpoint
    members = []
    at = 1 + 13 * data[0]
    for first in range(1, at, 13):
        column, found = member_of_array(data[first:first + 13])
        if column != len(members):
            raise SystemExit("members of the checkpoint")
        members.append(found)
    count, lost, regions = struct.unpack_from("<3Q", data, at)
    numbers = struct.unpack_from(f"<{count + lost}Q", data, at + 24)
    bits = data[at + 24 + 8 * (count + lost):]
    if len(bits) != -(-regions // 8):
        raise SystemExit("length of the checkpoint")
    marked, unreadable = set(numbers[:count]), set(numbers[count:])
    missed = {region for region in range(regions) if bits[region // 8] >> region % 8 & 1}
    for record in journal.records:
        payload = record["payload"]
        if record["kind"] == 1:
            column, found = member_of_array(payload)
            members[column] = found
            if found["state"] == "out":
                missed |= marked
            if all(it["state"] == "in" for it in members):
                missed = set()
            continue
        numbers = {number for (number,) in struct.iter_unpack("<Q", payload)}
        if record["kind"] == 2:
            marked |= numbers
            if any(it["state"] == "out" for it in members):
                missed |= numbers
        elif record["kind"] == 3:
            marked -= numbers
        elif record["kind"] == 4:
            unreadable |= numbers
        elif record["kind"] == 5:
            unreadable -= numbers
        else:
            raise SystemExit(f"a record of kind {record['kind']}")
    return {"members": members, "regions": regions, "marked": sorted(marked),
            "unreadable": sorted(unreadable), "missed": sorted(missed)}


def buffer_map(journal):
    """The dirty blocks of a write buffer: block, place, checksum."""
    places, count = struct.unpack_from("<2Q", journal.checkpoint)
    first = journal.root["area_blocks"]
    live, owners = {}, {}

    def leave(lba):
        owners.pop(live.pop(lba, (None,))[0], None)

    def take(lba, place, checksum):
        # What the place had before has left it, and the place that the block had is free.
        leave(owners.get(place))
        leave(lba)
        live[lba], owners[place] = (place, checksum), lba

    for found in struct.iter_unpack("<QII", journal.checkpoint[16:]):
        take(*found)
    if len(live) != count:
        raise SystemExit("blocks of the checkpoint")
    for record in journal.records:
        if record["kind"] == 1:
            (lba,) = struct.unpack("<Q", record["payload"])
            for index, checksum in enumerate(record["checksums"]):
                if index not in record["missing"]:
                    take(lba + index, record["data"][0] + index - first, checksum)
        elif record["kind"] == 2:
            for lba, place, blocks in struct.iter_unpack("<QII", record["payload"]):
                for index in range(blocks):
                    if live.get(lba + index, (None,))[0] == place + index:
                        leave(lba + index)
        else:
            start, blocks = struct.unpack("<2Q", record["payload"])
            for lba in [lba for lba in live if start <= lba < start + blocks]:
                leave(lba)
    return {"places": places, "dirty_blocks": len(live),
            "dirty": [[lba, *found] for lba, found in sorted(live.items())]}
