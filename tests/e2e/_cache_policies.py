"""Eight policies of a cache once more, each from its paper or its page in docs/systems/policies.md, over Python's ordered dictionaries:
no code and no structure is that of the program. The oldest of an ordered dictionary comes first.

A policy answers `request(block, is_write)` with the blocks that leave, in order, and takes the block in. It is asked with `in`
whether a block is cached."""

import collections

Queue = collections.OrderedDict


def pop_oldest(queue):
    return queue.popitem(last=False)[0]


class Fifo:
    def __init__(self, capacity, _):
        self.capacity, self.queue = capacity, Queue()

    def __contains__(self, block):
        return block in self.queue

    def request(self, block, _):
        if block in self.queue:
            return ()
        victims = (pop_oldest(self.queue),) if len(self.queue) == self.capacity else ()
        self.queue[block] = None
        return victims


class Clock:
    """The hand stands before the oldest. What it passes goes behind the youngest, which is the same as a hand that moves on."""

    def __init__(self, capacity, _):
        self.capacity, self.ring = capacity, Queue()

    def __contains__(self, block):
        return block in self.ring

    def request(self, block, _):
        if block in self.ring:
            self.ring[block] = True
            return ()
        victims = ()
        if len(self.ring) == self.capacity:
            while True:
                oldest, is_used = self.ring.popitem(last=False)
                if not is_used:
                    break
                self.ring[oldest] = False
            victims = (oldest,)
        self.ring[block] = False
        return victims


class Sieve:
    """A list in which each block knows the next younger one; the hand goes from old to young."""

    def __init__(self, capacity, _):
        self.capacity, self.visited, self.younger, self.older = capacity, {}, {}, {}
        self.youngest = self.oldest = self.hand = None

    def __contains__(self, block):
        return block in self.visited

    def request(self, block, _):
        if block in self.visited:
            self.visited[block] = True
            return ()
        victims = (self.evict(),) if len(self.visited) == self.capacity else ()
        self.visited[block], self.younger[block], self.older[block] = False, None, self.youngest
        if self.youngest is None:
            self.oldest = block
        else:
            self.younger[self.youngest] = block
        self.youngest = block
        return victims

    def evict(self):
        at = self.oldest if self.hand is None else self.hand
        while self.visited[at]:
            self.visited[at] = False
            at = self.oldest if self.younger[at] is None else self.younger[at]
        younger, older = self.younger.pop(at), self.older.pop(at)
        self.hand = younger
        del self.visited[at]
        if older is None:
            self.oldest = younger
        else:
            self.younger[older] = younger
        if younger is None:
            self.youngest = older
        else:
            self.older[younger] = older
        return at


class S3Fifo:
    def __init__(self, capacity, _):
        self.capacity, self.small, self.main, self.ghosts = capacity, Queue(), Queue(), Queue()

    def __contains__(self, block):
        return block in self.small or block in self.main

    def request(self, block, _):
        for queue in self.small, self.main:
            if block in queue:
                queue[block] = min(queue[block] + 1, 3)
                return ()
        victims = []
        while len(self.small) + len(self.main) >= self.capacity:
            if self.small and 10 * len(self.small) >= self.capacity:
                self.evict_small(victims)
            else:
                self.evict_main(victims)
        if block in self.ghosts:
            del self.ghosts[block]
            self.main[block] = 0
        else:
            self.small[block] = 0
        return victims

    def evict_small(self, victims):
        while self.small:
            block, uses = self.small.popitem(last=False)
            if uses <= 1:
                self.ghosts.pop(block, None)
                self.ghosts[block] = None
                if len(self.ghosts) > self.capacity * 9 // 10:
                    pop_oldest(self.ghosts)
                victims.append(block)
                return
            self.main[block] = 0
            if 10 * len(self.main) > 9 * self.capacity:
                self.evict_main(victims)

    def evict_main(self, victims):
        while self.main:
            block, uses = self.main.popitem(last=False)
            if uses == 0:
                victims.append(block)
                return
            self.main[block] = uses - 1


class TwoQ:
    def __init__(self, capacity, _):
        self.capacity, self.new, self.left, self.back = capacity, Queue(), Queue(), Queue()

    def __contains__(self, block):
        return block in self.back or block in self.new

    def request(self, block, _):
        if block in self.back:
            self.back.move_to_end(block)
            return ()
        if block in self.new:
            return ()
        comes_back = self.left.pop(block, self) is None
        victims = ()
        if len(self.new) + len(self.back) == self.capacity:
            if len(self.new) > self.capacity // 4:
                victims = (pop_oldest(self.new),)
                self.left[victims[0]] = None
                if len(self.left) > self.capacity // 2:
                    pop_oldest(self.left)
            else:
                victims = (pop_oldest(self.back),)
        (self.back if comes_back else self.new)[block] = None
        return victims


class Arc:
    def __init__(self, capacity, _):
        self.c, self.p = capacity, 0.0
        self.t1, self.t2, self.b1, self.b2 = Queue(), Queue(), Queue(), Queue()

    def __contains__(self, block):
        return block in self.t1 or block in self.t2

    def request(self, block, _):
        t1, t2, b1, b2 = self.t1, self.t2, self.b1, self.b2
        if block in t1 or block in t2:
            t1.pop(block, None)
            t2.pop(block, None)
            t2[block] = None
            return ()
        victims = ()
        if block in b1:
            self.p = min(self.p + max(len(b2) / len(b1), 1.0), self.c)
            victims = self.replace(False)
            del b1[block]
            t2[block] = None
        elif block in b2:
            self.p = max(self.p - max(len(b1) / len(b2), 1.0), 0.0)
            victims = self.replace(True)
            del b2[block]
            t2[block] = None
        else:
            if len(t1) + len(b1) == self.c:
                if len(t1) < self.c:
                    pop_oldest(b1)
                    victims = self.replace(False)
                else:
                    victims = (pop_oldest(t1),)
            elif len(t1) + len(t2) + len(b1) + len(b2) >= self.c:
                if len(t1) + len(t2) + len(b1) + len(b2) == 2 * self.c:
                    pop_oldest(b2)
                victims = self.replace(False)
            t1[block] = None
        return victims

    def replace(self, is_in_b2):
        if len(self.t1) + len(self.t2) < self.c:
            return ()
        if self.t1 and (len(self.t1) > self.p or (is_in_b2 and len(self.t1) == self.p)):
            victim = pop_oldest(self.t1)
            self.b1[victim] = None
        else:
            victim = pop_oldest(self.t2)
            self.b2[victim] = None
        return (victim,)


class Most:
    def __init__(self, capacity, below):
        self.capacity, self.below, self.cached, self.count = capacity, below, collections.defaultdict(set), 0

    def __contains__(self, block):
        return block in self.cached[block // self.below.band_blocks]

    def request(self, block, _):
        of_band = self.cached[block // self.below.band_blocks]
        if block in of_band:
            return ()
        victims = ()
        if self.count == self.capacity:
            band = min(self.cached, key=lambda band: (-len(self.cached[band]), band))
            victims = sorted(self.cached[band])
            self.cached[band].clear()
            self.count -= len(victims)
        of_band.add(block)
        self.count += 1
        return victims


class Sac:
    """Blocks stand in the order of their last use: the clean ones together, the dirty ones by band."""

    def __init__(self, capacity, below):
        self.capacity, self.below, self.now = capacity, below, 0
        self.clean, self.dirty = Queue(), {}
        self.count, self.opened, self.phase, self.clean_left = 0, [], None, 0
        self.chunk = max(capacity // 80, 1)

    def __contains__(self, block):
        return block in self.clean or block in self.dirty.get(block // self.below.band_blocks, ())

    def request(self, block, is_write):
        band = block // self.below.band_blocks
        was_dirty = block in self.dirty.get(band, ())
        if was_dirty:
            self.take_dirty(band, block)
        elif block in self.clean:
            del self.clean[block]
            self.count -= 1
        victims = self.evict() if self.count == self.capacity else ()
        self.now += 1
        (self.dirty.setdefault(band, Queue()) if is_write or was_dirty else self.clean)[block] = self.now
        self.count += 1
        return victims

    def take_dirty(self, band, block):
        del self.dirty[band][block]
        if not self.dirty[band]:
            del self.dirty[band]
        self.count -= 1

    def stale(self, used):
        return sum(self.now - at >= self.capacity * 4 // 5 for at in used)

    def evict(self):
        if not self.goes_on():
            self.choose()
        if self.phase == "clean":
            self.clean_left -= 1
            self.count -= 1
            victims = [pop_oldest(self.clean)]
        else:
            oldest = {band: next(iter(self.dirty[band].values())) for band in self.opened if band in self.dirty}
            band = min(oldest, key=oldest.get)
            victims = list(self.dirty[band])[:self.below.destage_slots]
            for block in victims:
                self.take_dirty(band, block)
        if not self.goes_on():
            self.phase = None
        return victims

    def goes_on(self):
        """Whether the phase that is on has somebody to give up."""
        if self.phase == "clean":
            return self.clean and self.clean_left > 0
        return self.phase == "dirty" and any(band in self.dirty for band in self.opened)

    def candidates(self):
        bands = sorted((band for band in self.dirty if band not in self.opened),
                       key=lambda band: (-self.stale(self.dirty[band].values()), band))
        return bands[:max(self.below.log_blocks // self.below.band_blocks, 1)]

    def choose(self):
        if not self.dirty:
            self.phase, self.clean_left = "clean", self.chunk
            return
        bands = self.candidates()
        if not bands:
            self.opened = []
            bands = self.candidates()
        if self.clean:
            some = [used for used, _ in zip(self.clean.values(), range(self.chunk))]
            stale = self.stale(some)
            clean_cost = (len(some) - stale) * 14_000.0 / (stale + 1)
            dirty = sum(len(self.dirty[band]) for band in bands)
            stale_dirty = sum(self.stale(self.dirty[band].values()) for band in bands)
            if clean_cost < (len(bands) * 435_833.0 + dirty * 728.0) / (stale_dirty + 1):
                self.phase, self.clean_left = "clean", self.chunk
                return
        self.opened, self.phase = bands, "dirty"


POLICIES = {"fifo": Fifo, "clock": Clock, "sieve": Sieve, "s3-fifo": S3Fifo, "2q": TwoQ, "arc": Arc, "most": Most, "sac": Sac}
