"""A parity array as docs/formats/parity-array.md describes it, for tests/format_reader.py. What follows from the settings of its
node is given: band rows that places need, blocks of a band, slots, placement. Bands lie by arithmetic: band k begins at block k * b."""

import functools
import struct

from format_blocks import BLOCK, Bad, crc32c, Member, TABLE, unseal
from format_layers import member_of_array

OF_ZEROES = crc32c(bytes(BLOCK))
WRONG, UNKNOWN = 0xFFFFFFFF, 0xFFFFFFFE
MEMBER, WRITE, SETTLED, ZEROED, BEGUN, HELD, COLLECTED, UNDONE, SLOTS, CLEARED, ADDING = range(1, 12)


def words_of(payload):
    return [word for (word,) in struct.iter_unpack("<Q", payload)]


def word(block):
    """The word of a block."""
    found = crc32c(block) ^ OF_ZEROES
    return found - 2 if found >= UNKNOWN else found


def set_bits(words):
    """Bits by number, those that are set."""
    head = next(words)
    if head & 1:
        found = set()
        for at in range(head >> 1):
            bits = next(words)
            found.update(64 * at + bit for bit in range(64) if bits >> bit & 1)
        return found
    runs = [(next(words), next(words)) for _ in range(head >> 1)]
    return {number for first, count in runs for number in range(first, first + count)}


class Write:
    """A record of blocks that are written."""

    def __init__(self, payload):
        words = words_of(payload)
        self.number, logged = words[:2]
        at = 5 + logged if logged else 2
        self.blocks = []
        while at < len(words):
            head, block, stamp, place = words[at:at + 4]
            has_slot = head >> 32 & 1
            self.blocks.append((head & 0xFFFFFFFF, block, stamp, place, words[at + 4] if has_slot else None))
            at += 5 if has_slot else 4


class ParityArray:
    """The state of an array all of whose members are there."""

    def __init__(self, journal, folder, placement, band_rows, band_blocks, slots):
        self.journal, self.is_static = journal, placement == "static"
        words = iter(words_of(journal.checkpoint[1 + 13 * journal.checkpoint[0]:]))
        self.members = []
        for at in range(journal.checkpoint[0]):
            column, found = member_of_array(journal.checkpoint[1 + 13 * at:14 + 13 * at])
            if column != at:
                raise SystemExit("members of the checkpoint")
            self.members.append(found)
        self.homes = len(self.members) - 2
        self.band_blocks = band_blocks
        self.rows = max((band_rows + 1) * band_blocks, slots)
        root = journal.root
        # As long as the ring and the two pages that list the copies.
        self.first_table = root["area_blocks"] + journal.ring_blocks + 2
        self.table_rows = max(1, min(1008 // (self.homes + 1), self.rows // 4))
        self.first_block = self.first_table + -(-self.rows // self.table_rows)
        self.files = [Member(folder / f"home-{home}.img") for home in range(self.homes)]
        self.files += [Member(folder / "data.img"), Member(folder / "parity.img")]
        self.next_write, self.next_place = next(words), next(words)
        self.place_of = {}
        for _ in range(next(words)):
            block, blocks, place = next(words), next(words), next(words)
            self.place_of.update((block + at, place + at) for at in range(blocks))
        self.live = set_bits(words)
        used = next(words)
        free = [next(words) for _ in range(next(words))]
        self.slot_of = {}
        for _ in range(next(words)):
            place = next(words)
            self.slot_of[place] = next(words)
        if sorted([*free, *self.slot_of.values()]) != list(range(used)):
            raise SystemExit("a slot is neither free nor of one place")
        self.spare = next(words)
        self.lie_at = [next(words) for _ in range(band_rows)]
        if sorted([*self.lie_at, self.spare]) != list(range(band_rows + 1)):
            raise SystemExit("band rows lie on one another")
        for _ in range(band_rows * self.homes):
            next(words)
        self.held = [set_bits(words) for _ in range(self.homes + 1)]
        self.tables = set_bits(words)
        self.unreadable = {next(words) for _ in range(next(words))}
        self.region_rows = next(words)
        if self.region_rows != self.region_rows_of_bands(band_rows + 1):
            raise SystemExit(f"regions of {self.region_rows} rows")
        self.missed = set_bits(words)
        if all(member["state"] == "in" for member in self.members):
            self.missed = set()
        if next(words, None) is not None:
            raise SystemExit("words behind the checkpoint")
        self.replay()

    def region_rows_of_bands(self, band_rows):
        """The most rows that share out a band evenly, up to a sixteenth of all rows of homes; or a whole band."""
        most = min(max(1, min(band_rows * self.band_blocks // 16, 1024)), self.band_blocks)
        found = [rows for rows in range(-(-most // 4), most + 1) if self.band_blocks % rows == 0]
        return found[-1] if found else self.band_blocks

    def row_of(self, place):
        """The row of the homes where a place lies now."""
        row = place // self.homes
        return self.lie_at[row // self.band_blocks] * self.band_blocks + row % self.band_blocks

    def block_at(self, column, row):
        first = self.first_block if column >= self.homes else 0
        try:
            return self.files[column].block(first + row)
        except Bad:
            return bytes(BLOCK)

    def replay(self):
        records = self.journal.records
        settled = [words_of(it["payload"])[0] for it in records if it["kind"] == SETTLED]
        self.settled = settled[-1] if settled else 0
        self.undone = {words_of(it["payload"])[0] for it in records if it["kind"] == UNDONE}
        self.in_doubt = 0
        # By block the stamp of the change that holds, by place that of the write to its slot.
        self.stamp_of, self.slotted = {}, {}
        self.begun, self.to_hold = None, set()
        # Of each column the rows of all writes, and the band rows that were collected to.
        self.recent, self.to_bands = [], []
        self.collected_rows = set()
        for record in records:
            self.take(record["kind"], record["payload"])
        if self.begun is not None:
            self.clear_homes(self.begun)
        for band_row in self.collected_rows:
            places = self.band_blocks * self.homes
            of_row = range(band_row * places, (band_row + 1) * places)
            self.unreadable.update(place for place in of_row if place not in self.slot_of and self.is_lost(place))
        self.unreadable = {place for place in self.unreadable if self.is_lost(place)}
        away = [column for column, member in enumerate(self.members) if member["state"] in ("out", "returning")]
        if away:
            self.miss(away[0])

    def miss(self, away):
        """A member that is away has missed what the records speak of."""
        rows = {row for column, row in self.recent if away in (column, self.homes + 1)}
        for band in self.to_bands:
            of_band = range(band * self.band_blocks, (band + 1) * self.band_blocks)
            rows.update(of_band)
            rows.update(self.rows + row // self.table_rows for row in of_band)
        self.missed.update(row // self.region_rows for row in rows)

    def take(self, kind, payload):
        if kind == MEMBER:
            column, found = member_of_array(payload)
            self.members[column] = found
            if all(member["state"] == "in" for member in self.members):
                self.missed = set()
        elif kind == WRITE:
            self.write(Write(payload))
        elif kind == ZEROED:
            stamp, first, blocks = words_of(payload)
            for block in range(first, first + blocks):
                place = block if self.is_static else self.place_of.get(block)
                if self.is_newest(block, stamp):
                    self.live.discard(place)
                    self.slot_of.pop(place, None)
        elif kind == BEGUN:
            self.begun, self.to_hold = words_of(payload)[1], set()
            self.to_bands.append(self.begun)
        elif kind == HELD:
            (first,) = struct.unpack_from("<Q", payload)
            bits = int.from_bytes(payload[8:], "little")
            self.to_hold.update(first + bit for bit in range(bits.bit_length()) if bits >> bit & 1)
        elif kind == COLLECTED:
            self.collected(*words_of(payload))
        elif kind not in (SETTLED, UNDONE, SLOTS, CLEARED, ADDING):
            raise SystemExit(f"a record of kind {kind}")

    def is_newest(self, block, stamp):
        self.stamp_of[block] = max(stamp, self.stamp_of.get(block, 0))
        return self.stamp_of[block] == stamp

    def write(self, write):
        self.next_write = write.number + 1
        is_sure = write.number < self.settled
        self.in_doubt += not is_sure
        for checksum, block, stamp, place, slot in write.blocks:
            if not self.is_static:
                self.place_of[block] = place
                self.next_place = max(self.next_place, place + 1)
            elif place != block:
                raise SystemExit("the place of a block is not its address")
            column, row = (place % self.homes, self.row_of(place)) if slot is None else (self.homes, slot)
            self.recent.append((column, row))
            if not is_sure and crc32c(self.block_at(column, row)) != checksum:
                continue
            self.held[column].add(row)
            if write.number in self.undone or not self.is_newest(block, stamp):
                continue
            self.live.add(place)
            if slot is not None:
                self.slot_of[place], self.slotted[place] = slot, stamp

    def clear_homes(self, band_row):
        rows = range(band_row * self.band_blocks, (band_row + 1) * self.band_blocks)
        for held in self.held[:self.homes]:
            held.difference_update(rows)

    def collected(self, band_row, to, stamp):
        if (self.begun, self.spare) != (to, to):
            raise SystemExit("a collection that was not begun")
        self.clear_homes(to)
        rows = range(to * self.band_blocks, (to + 1) * self.band_blocks)
        self.tables.update(row // self.table_rows for row in rows)
        for place in self.to_hold:
            self.held[place % self.homes].add(to * self.band_blocks + place // self.homes)
        first = band_row * self.band_blocks * self.homes
        for place in range(first, first + self.band_blocks * self.homes):
            if place in self.slot_of and self.slotted.get(place, 0) <= stamp:
                del self.slot_of[place]
        self.spare, self.lie_at[band_row], self.begun = self.lie_at[band_row], to, None
        self.collected_rows.add(band_row)

    def is_lost(self, place):
        slot = self.slot_of.get(place)
        column, row = (place % self.homes, self.row_of(place)) if slot is None else (self.homes, slot)
        return place in self.live and row not in self.held[column]

    def document(self, runs):
        return {
            "members": self.members, "next_write": self.next_write, "next_place": self.next_place,
            "places": sorted([block, place] for block, place in self.place_of.items()),
            "live": runs(self.live), "live_blocks": len(self.live),
            "slot_of": sorted([place, slot] for place, slot in self.slot_of.items()),
            "spare": self.spare, "band_rows_lie_at": self.lie_at, "held": [runs(held) for held in self.held],
            "tables_written": len(self.tables), "unreadable_places": sorted(self.unreadable),
            "writes_in_doubt": self.in_doubt, "is_collecting": self.begun is not None,
            "region_rows": self.region_rows, "missed": runs(self.missed), "missed_regions": len(self.missed),
            "first_table_block": self.first_table, "first_block": self.first_block,
        }

    def table(self, disk, number):
        """The words of a table, as a disk has them; none where it is damaged."""
        owner = bytes.fromhex(self.journal.root["set"].replace("-", ""))
        address = self.first_table + number
        try:
            _, payload = unseal(self.files[disk].block(address), TABLE, address, owner)
        except Bad:
            return None
        words = struct.unpack(f"<{self.table_rows * (self.homes + 1)}I", payload)
        return [words[at:at + self.homes + 1] for at in range(0, len(words), self.homes + 1)]

    def wrong(self):
        """Of an array that was closed in order: tables, blocks and sums that are not what they must be."""
        data, parity = self.homes, self.homes + 1
        tables, bad_tables = {}, []
        for number in sorted(self.tables):
            copies = [self.table(disk, number) for disk in (data, parity)]
            bad_tables += [[disk, number] for disk, copy in zip((data, parity), copies) if copy is None]
            tables[number] = next((copy for copy in copies if copy is not None), None)
        bad, bad_sums, known = [], [], 0
        for row in sorted(set().union(*self.held)):
            words = tables.get(row // self.table_rows)
            columns = [column for column, held in enumerate(self.held) if row in held]
            blocks = [self.block_at(column, row) for column in columns]
            wrong = []
            for column, block in zip(columns, blocks):
                expected = words[row % self.table_rows][column] if words else UNKNOWN
                known += expected != UNKNOWN
                if expected != UNKNOWN and word(block) != expected:
                    wrong.append([column, row])
            bad += wrong
            numbers = (int.from_bytes(block, "little") for block in (*blocks, self.block_at(parity, row)))
            if not wrong and functools.reduce(int.__xor__, numbers) != 0:
                bad_sums.append(row)
        return {"tables": bad_tables, "blocks": sorted(bad), "sums": bad_sums, "blocks_compared": known}
