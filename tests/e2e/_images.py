"""Images of every ready-made stack and drive that `create` makes one of, with small caches and as they come, and of stacks of
other kinds; and what a client knows of a device that it has written to, over servers that are closed or killed."""

import json
import shutil
import struct
import subprocess

from _kill import Killable
from _labels import BLOCK, state
from _nbd import FLUSH, TRIM, WRITE, WRITE_ZEROES, Pipeline
from _serving import IMBREX, SCRATCH
from _stacks import MEMORY, stripe_with, two_caches

SIZE = 64 << 20
# What is written to and read of a larger device, at this many places.
PLACES, PLACE = 4, SIZE // 4
HOT_BLOCKS = 256
REQUEST_BLOCKS_MAX = 16
IN_FLIGHT = 8
READ_BLOCKS = 256
# What has no image: the errors of `create` that say so.
NO_IMAGE = ("cannot be served", "not created and served")
# As large as what it joins.
UNSIZED = ("spanned",)
BANDS = ("translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=2MiB")
CACHE = ("cache.capacity=2MiB",)
ZONES = ("cache.zone=2MiB",)
# Small ones, so that victims are destaged, bands and segments rewritten and checkpoints written.
SMALL = {
    "smr-only": BANDS,
    "lru": (*CACHE, *BANDS),
    "lru-band": (*CACHE, *BANDS),
    "pore-cf": (*CACHE, *ZONES, *BANDS),
    "pore-pf": (*CACHE, *ZONES, *BANDS),
    "pore": (*CACHE, *ZONES, *BANDS),
    "ride": (*CACHE, *BANDS),
    "lru-archive": CACHE,
    "pore-archive": (*CACHE, *ZONES),
    "ride-archive": CACHE,
    "hwsr": ("buffer.capacity=2MiB",),
    "s-block": ("buffer.capacity=2MiB",),
}


def run(program, *words):
    """Runs a program to its end; what it said is text."""
    return subprocess.run([program, *words], capture_output=True, text=True)


def make(program, stack, data, options, backing=None):
    """Creates an image in an empty folder, and the file of a disk that is elsewhere; false if there is no such image."""
    shutil.rmtree(data, ignore_errors=True)
    if backing:
        backing.unlink(missing_ok=True)
        with open(backing, "wb") as file:
            file.truncate(SIZE // 2)
    made = run(program, "create", stack, "--data", data, *options)
    assert made.returncode == 0 or any(word in made.stderr for word in NO_IMAGE), f"{stack}: {made.stderr}"
    return made.returncode == 0


class Device:
    """What a client knows of a device: by block the write that it holds, and those that may have reached it."""

    def __init__(self, stack, data, rng):
        self.stack, self.data, self.rng = stack, data, rng
        self.versions, self.unanswered, self.version = {}, {}, 0

    def serve(self, program, *options):
        server = Killable(self.stack, self.data, *options)
        server.command[0] = program
        return server

    def contents(self, block, version):
        return struct.pack("<QQ", block, version) * (BLOCK // 16) if version else bytes(BLOCK)

    def places(self, client):
        if client.size <= SIZE:
            return [range(client.size // BLOCK)]
        starts = [client.size // PLACES * number // BLOCK for number in range(PLACES)]
        return [range(start, start + PLACE // BLOCK) for start in starts]

    def check(self, client, settle=True):
        """Reads every place; settles which of two versions the blocks in flight have."""
        for place in self.places(client):
            for start in range(place.start, place.stop, READ_BLOCKS):
                blocks = range(start, min(start + READ_BLOCKS, place.stop))
                data = client.read(start * BLOCK, len(blocks) * BLOCK)
                for block in blocks:
                    found = data[(block - start) * BLOCK:(block - start + 1) * BLOCK]
                    self.check_block(block, found, settle)
        if settle:
            self.unanswered = {}

    def check_block(self, block, found, settle):
        version, other = self.versions.get(block, 0), self.unanswered.get(block)
        if found == self.contents(block, version):
            return
        begins = struct.unpack("<QQ", found[:16])
        assert other is not None and found == self.contents(block, other), \
            f"block {block} should be of write {version} or {other}, and begins with {begins}"
        if settle:
            self.versions[block] = other

    def work(self, server, client, requests, kill):
        """Requests of every kind; ends with all of them flushed, or with some in flight and the server killed."""
        busy = set()

        def take():
            (version, blocks), _ = client.answer()
            busy.difference_update(blocks)
            self.versions.update((block, version) for block in blocks)

        for _ in range(requests):
            while len(client.in_flight) >= IN_FLIGHT:
                take()
            self.send(client, busy)
        if not kill:
            while client.in_flight:
                take()
            client.flush()
            return
        assert client.in_flight, "nothing is in flight"
        server.kill()
        try:
            while True:
                take()
        except ConnectionError:
            pass
        for _, (version, blocks) in client.in_flight.values():
            self.unanswered.update((block, version) for block in blocks)

    def send(self, client, busy):
        blocks = self.free_blocks(client, busy)
        busy.update(blocks)
        choice = self.rng.random()
        if choice < 0.04:
            busy.difference_update(blocks)
            return client.send((0, []), FLUSH)
        offset, length = blocks.start * BLOCK, len(blocks) * BLOCK
        if choice < 0.12:
            return client.send((0, blocks), TRIM if choice < 0.08 else WRITE_ZEROES, offset, length)
        self.version += 1
        data = b"".join(self.contents(block, self.version) for block in blocks)
        return client.send((self.version, blocks), WRITE, offset, length, data)

    def free_blocks(self, client, busy):
        while True:
            place = self.rng.choice(self.places(client))
            within = min(HOT_BLOCKS, len(place)) if self.rng.random() < 0.5 else len(place)
            count = self.rng.randint(1, REQUEST_BLOCKS_MAX)
            start = place.start + self.rng.randrange(within - count)
            if busy.isdisjoint(range(start, start + count)):
                return range(start, start + count)

    def use(self, program, requests, kill):
        """Serves, compares all that is known, writes, and ends; what the server has said."""
        with self.serve(program) as server:
            client = Pipeline(server.socket)
            self.check(client)
            self.work(server, client, requests, kill)
            said = server.said()
        return said

    def is_clean(self, when):
        before = state(self.data)
        done = run(IMBREX, "check", self.data, "--data")
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == "clean", f"{when}: {done.stdout}{done.stderr}"
        assert state(self.data) == before, f"{when}: the check has written"


def cases(program):
    """Each a name, the stack, the options of `create`, how many requests, and the file of a disk that is elsewhere."""
    document = json.loads(run(program, "systems", "--json").stdout)
    for name in [entry["name"] for part in ("systems", "drives") for entry in document[part]]:
        # Little, because some stacks have a log for the smallest workload and rewrite a band for a few blocks.
        yield name, name, () if name in UNSIZED else ("--size", "64MiB"), 80, None
    for name, settings in SMALL.items():
        options = [word for setting in settings for word in ("--set", setting)]
        yield f"{name}, small", name, ("--size", "64MiB", *options), 400, None
    backing = SCRATCH / "elsewhere.disk"
    own = {"two caches": two_caches(16, "2 MiB"), "memory": MEMORY, "backing": stripe_with(backing)}
    for name, text in own.items():
        path = SCRATCH / f"{name.replace(' ', '-')}.toml"
        path.write_text(f'name = "{path.stem}"\n{text}')
        yield name, path, (), 200, backing if name == "backing" else None
