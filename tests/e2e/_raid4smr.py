"""RAID 4SMR and RAID 4 as docs/systems/raid4smr.md and docs/models/movement.md describe them, without anything of
Imbrex: where each block goes, what is counted, and which blocks of which disk are visited in which order."""

import dataclasses

NEVER = "never"
COUNTERS = ("first_writes", "updates", "unsafe_first_writes", "redirected", "collections", "forced_collections",
            "collected_blocks", "map_entries", "slots_peak")


@dataclasses.dataclass(frozen=True)
class Shape:
    """The homes of an array and their bands."""

    homes: int
    track_blocks: int
    band_tracks: int

    @property
    def band(self):
        return self.track_blocks * self.band_tracks


@dataclasses.dataclass(frozen=True)
class Settings:
    """The keys of a node `raid4smr`; `data_capacity` in slots."""

    shape: Shape
    placement: str
    first_write: str
    slots: str
    collect_at: object
    data_capacity: int

    def due_at(self):
        """Mapped blocks with which a band row is collected, None for never."""
        if self.collect_at == NEVER:
            return None
        return self.collect_at or self.shape.band


class Slots:
    """The slots of the data disk. Freed ones go before new ones."""

    def __init__(self, number, order):
        self.number = number
        self.lowest = order == "lowest"
        self.new = 0
        self.freed = []

    def empty(self):
        return not self.freed and self.new == self.number

    def take(self):
        if self.freed:
            return self.freed.pop(0)
        self.new += 1
        return self.new - 1

    def give_back(self, slots):
        """Slots are free again, in this order."""
        self.freed += slots
        if self.lowest:
            self.freed.sort()


class Array:
    """RAID 4SMR. `visits` has pairs of (is it a write, block) for each disk, in order, but for collections."""

    def __init__(self, settings):
        self.settings = settings
        self.shape = settings.shape
        self.static = settings.placement == "static"
        self.place = {}
        self.mapped = {}
        self.blocks_of_row = {}
        self.mapped_of_row = {}
        self.last_track = {}
        self.physical = {}
        self.spare = 0
        self.free = Slots(settings.data_capacity, settings.slots)
        self.count = dict.fromkeys(COUNTERS, 0)
        homes = [f"home-{home}" for home in range(self.shape.homes)]
        self.visits = {name: [] for name in (*homes, "data", "parity")}

    def counters(self):
        redirected = self.count["unsafe_first_writes"] + self.count["updates"]
        return dict(self.count, map_entries=len(self.mapped), redirected=redirected)

    def place_of(self, block):
        """The home of a block and its row there, with the bands in their logical order."""
        place = block if self.static else self.place.get(block)
        return None if place is None else (place % self.shape.homes, place // self.shape.homes)

    def address(self, row):
        """The block of a home for a row. The spare band row is at first before all others."""
        band = row // self.shape.band
        return self.physical.setdefault(band, band + 1) * self.shape.band + row % self.shape.band

    def read(self, block, blocks):
        for block in range(block, block + blocks):
            if block in self.mapped:
                self.visits["data"].append((False, self.mapped[block]))
            elif place := self.place_of(block):
                # With static places a block that was never written is looked for at home.
                self.visits[f"home-{place[0]}"].append((False, self.address(place[1])))

    def write(self, block, blocks):
        """Blocks are written one by one, and the parity of a row once for those of the row that follow one another."""
        row_before = None
        for block in range(block, block + blocks):
            disk, address = self.write_block(block)
            self.visits[disk].append((True, address))
            row = (disk == "data", address)
            if row != row_before:
                self.visits["parity"].append((True, address))
            row_before = row

    def write_block(self, block):
        """The disk and its block that the block goes to."""
        if block in self.place:
            self.count["updates"] += 1
            return "data", self.slot_for(block)
        self.place[block] = block if self.static else len(self.place)
        home, row = self.place_of(block)
        band, track = row // self.shape.band, row % self.shape.band // self.shape.track_blocks
        if self.settings.first_write == "rule" and track < self.last_track.get((home, band), 0):
            self.count["unsafe_first_writes"] += 1
            return "data", self.slot_for(block)
        self.count["first_writes"] += 1
        self.comes_home(block)
        return f"home-{home}", self.address(row)

    def comes_home(self, block):
        """The block is at home from now on, alive or not. A collection leaves that as it is."""
        home, row = self.place_of(block)
        band, track = row // self.shape.band, row % self.shape.band // self.shape.track_blocks
        self.blocks_of_row.setdefault(band, set()).add(block)
        self.last_track[home, band] = max(track, self.last_track.get((home, band), 0))

    def slot_for(self, block):
        """The slot of a block on the data disk, a new one if it has none; and what a new one makes due."""
        if block in self.mapped:
            return self.mapped[block]
        if self.free.empty():
            fullest = min(self.mapped_of_row, key=lambda row: (-len(self.mapped_of_row[row]), row))
            self.count["forced_collections"] += 1
            self.collect(fullest)
        slot = self.mapped[block] = self.free.take()
        band = self.place_of(block)[1] // self.shape.band
        self.mapped_of_row.setdefault(band, set()).add(block)
        self.count["slots_peak"] = max(self.count["slots_peak"], len(self.mapped))
        if len(self.mapped_of_row[band]) == self.settings.due_at():
            self.count["collections"] += 1
            self.collect(band)
        return slot

    def collect(self, band):
        """All live blocks of a band row go to the spare band row, which takes its place."""
        mapped = self.mapped_of_row.pop(band)
        self.count["collected_blocks"] += len(self.blocks_of_row.get(band, set()) | mapped)
        for block in mapped:
            self.comes_home(block)
        # The documents do not say in which order one collection frees slots. This is the order of the blocks' places.
        in_order = sorted(mapped, key=self.place.get)
        self.free.give_back([self.mapped.pop(block) for block in in_order])
        self.physical[band], self.spare = self.spare, self.physical.get(band, band + 1)


class Raid4:
    """RAID 4: block k on data disk k modulo their number, row k div that number, with the parity of a row in it."""

    def __init__(self, disks):
        self.disks = disks
        self.visits = {name: [] for name in [f"data-{disk}" for disk in range(disks)] + ["parity"]}

    def read(self, block, blocks):
        for block in range(block, block + blocks):
            self.visits[f"data-{block % self.disks}"].append((False, block // self.disks))

    def write(self, block, blocks):
        rows = {}
        for block in range(block, block + blocks):
            self.visits[f"data-{block % self.disks}"].append((True, block // self.disks))
            rows[block // self.disks] = True
        self.visits["parity"] += [(True, row) for row in rows]


class Head:
    """Where a head is, and how far it went by blocks, tracks and bands."""

    def __init__(self, units):
        self.units = units
        self.at = None
        self.visits = 0
        self.moved = [0, 0, 0]
        self.discontinuities = [0, 0, 0]
        self.reversals = [0, 0, 0]
        self.sign = [0, 0, 0]

    def go(self, block):
        self.visits += 1
        if self.at is not None and block != self.at:
            for level, unit in enumerate(self.units):
                step = block // unit - self.at // unit
                self.moved[level] += abs(step)
                self.discontinuities[level] += step not in (0, 1)
                if step:
                    self.reversals[level] += self.sign[level] * step < 0
                    self.sign[level] = 1 if step > 0 else -1
        self.at = block


def movement(visits, model, track_blocks, band_tracks, rest="written", first_write="rule"):
    """What model 0 or 2 of docs/models/movement.md counts. The rest begins with the next track."""
    band_blocks = track_blocks * band_tracks
    head = Head((1, track_blocks, band_blocks))
    written, last_of_band = set(), {}
    updates = rewrites = rewritten = 0
    for is_write, block in visits:
        if not is_write:
            head.go(block)
            continue
        band = block // band_blocks
        behind = ()
        if model == 2 and (first_write == "rule" or block in written):
            behind = range((block // track_blocks + 1) * track_blocks, last_of_band.get(band, -1) + 1)
            if rest == "dense":
                behind = [later for later in behind if later in written]
        updates += block in written
        written.add(block)
        last_of_band[band] = max(block, last_of_band.get(band, -1))
        rewrites += len(behind) > 0
        rewritten += len(behind)
        for visited in (*behind, block, *behind):
            head.go(visited)
    return {"model": model, "visits": head.visits, **dict(zip(("block", "track", "band"), head.moved)),
            "discontinuities": head.discontinuities, "reversals": head.reversals, "updates": updates,
            "rewrites": rewrites, "rewritten_blocks": rewritten, "spilled": 0}
