//! Well-known policies once more, each straight from its paper with vectors that are searched from end to
//! end. The head of a queue is its first element, the tail its last.

/// A cache that holds addresses and nothing else.
pub(crate) trait Model {
    /// Whether a block is cached.
    fn holds(&self, x: u64) -> bool;

    /// A block is used, and comes in where it is not cached: the blocks that leave, in order.
    fn request(&mut self, x: u64) -> Vec<u64>;

    /// The same, where it counts whether the block is written.
    fn request_to(&mut self, x: u64, _is_write: bool) -> Vec<u64> {
        self.request(x)
    }

    /// A block leaves for another reason.
    fn forget(&mut self, x: u64);
}

/// The model of a policy.
pub fn model(word: &str, capacity: usize) -> Box<dyn Model> {
    match word {
        "fifo" => Box::new(Fifo { capacity, queue: vec![] }),
        "clock" => Box::new(Clock { capacity, ring: vec![], hand: 0 }),
        "sieve" => Box::new(Sieve { capacity, queue: vec![], hand: None }),
        "s3-fifo" => Box::new(S3Fifo { capacity, s: vec![], m: vec![], g: vec![] }),
        "2q" => Box::new(TwoQ { capacity, a1in: vec![], a1out: vec![], am: vec![] }),
        "arc" => Box::new(Arc { c: capacity, p: 0.0, ..Arc::default() }),
        other => panic!("no model of {other}"),
    }
}

/// Takes a block out of a queue. True when it was there.
fn take(queue: &mut Vec<u64>, x: u64) -> bool {
    let before = queue.len();
    queue.retain(|y| *y != x);
    queue.len() < before
}

struct Fifo {
    capacity: usize,
    queue: Vec<u64>,
}

impl Model for Fifo {
    fn holds(&self, x: u64) -> bool {
        self.queue.contains(&x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if self.holds(x) {
            return vec![];
        }
        self.queue.insert(0, x);
        self.queue.split_off(self.queue.len().min(self.capacity))
    }

    fn forget(&mut self, x: u64) {
        take(&mut self.queue, x);
    }
}

/// A ring in which the hand stands before the frame that it looks at next.
struct Clock {
    capacity: usize,
    ring: Vec<(u64, bool)>,
    hand: usize,
}

impl Model for Clock {
    fn holds(&self, x: u64) -> bool {
        self.ring.iter().any(|(y, _)| *y == x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if let Some((_, used)) = self.ring.iter_mut().find(|(y, _)| *y == x) {
            *used = true;
            return vec![];
        }
        if self.ring.len() < self.capacity {
            // As far ahead of the hand as can be.
            self.ring.insert(self.hand, (x, false));
            self.hand += 1;
            return vec![];
        }
        loop {
            self.hand %= self.capacity;
            let frame = &mut self.ring[self.hand];
            self.hand += 1;
            if !frame.1 {
                return vec![std::mem::replace(frame, (x, false)).0];
            }
            frame.1 = false;
        }
    }

    fn forget(&mut self, x: u64) {
        if let Some(at) = self.ring.iter().position(|(y, _)| *y == x) {
            self.ring.remove(at);
            self.hand -= usize::from(at < self.hand);
        }
    }
}

/// Algorithm 1 of the paper.
struct Sieve {
    capacity: usize,
    queue: Vec<(u64, bool)>,
    hand: Option<usize>,
}

impl Model for Sieve {
    fn holds(&self, x: u64) -> bool {
        self.queue.iter().any(|(y, _)| *y == x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if let Some((_, visited)) = self.queue.iter_mut().find(|(y, _)| *y == x) {
            *visited = true;
            return vec![];
        }
        let mut evicted = vec![];
        if self.queue.len() == self.capacity {
            let tail = self.queue.len() - 1;
            let mut o = self.hand.unwrap_or(tail);
            while self.queue[o].1 {
                self.queue[o].1 = false;
                o = o.checked_sub(1).unwrap_or(tail);
            }
            self.hand = o.checked_sub(1);
            evicted.push(self.queue.remove(o).0);
        }
        self.queue.insert(0, (x, false));
        self.hand = self.hand.map(|hand| hand + 1);
        evicted
    }

    fn forget(&mut self, x: u64) {
        if let Some(at) = self.queue.iter().position(|(y, _)| *y == x) {
            self.queue.remove(at);
            self.hand = match self.hand {
                Some(hand) if hand >= at => hand.checked_sub(1),
                hand => hand,
            };
        }
    }
}

/// Algorithm 1 of the paper.
struct S3Fifo {
    capacity: usize,
    s: Vec<(u64, u32)>,
    m: Vec<(u64, u32)>,
    g: Vec<u64>,
}

impl S3Fifo {
    fn evict(&mut self, evicted: &mut Vec<u64>) {
        if !self.s.is_empty() && self.s.len() as f64 >= 0.1 * self.capacity as f64 {
            self.evict_s(evicted);
        } else {
            self.evict_m(evicted);
        }
    }

    fn evict_s(&mut self, evicted: &mut Vec<u64>) {
        let mut done = false;
        while !done && !self.s.is_empty() {
            let (t, freq) = *self.s.last().expect("a tail");
            if freq > 1 {
                self.m.insert(0, (t, 0));
                if self.m.len() * 10 > self.capacity * 9 {
                    self.evict_m(evicted);
                }
            } else {
                self.g.insert(0, t);
                self.g.truncate(self.capacity * 9 / 10);
                evicted.push(t);
                done = true;
            }
            self.s.pop();
        }
    }

    fn evict_m(&mut self, evicted: &mut Vec<u64>) {
        while let Some((t, freq)) = self.m.pop() {
            if freq == 0 {
                evicted.push(t);
                return;
            }
            self.m.insert(0, (t, freq - 1));
        }
    }
}

impl Model for S3Fifo {
    fn holds(&self, x: u64) -> bool {
        self.s.iter().chain(&self.m).any(|(y, _)| *y == x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if let Some((_, freq)) = self.s.iter_mut().chain(&mut self.m).find(|(y, _)| *y == x) {
            *freq = (*freq + 1).min(3);
            return vec![];
        }
        let mut evicted = vec![];
        while self.s.len() + self.m.len() >= self.capacity {
            self.evict(&mut evicted);
        }
        match take(&mut self.g, x) {
            true => self.m.insert(0, (x, 0)),
            false => self.s.insert(0, (x, 0)),
        }
        evicted
    }

    fn forget(&mut self, x: u64) {
        self.s.retain(|(y, _)| *y != x);
        self.m.retain(|(y, _)| *y != x);
    }
}

/// The full version: the procedures 2Q and reclaimfor.
struct TwoQ {
    capacity: usize,
    a1in: Vec<u64>,
    a1out: Vec<u64>,
    am: Vec<u64>,
}

impl TwoQ {
    fn reclaim(&mut self) -> Vec<u64> {
        if self.a1in.len() + self.am.len() < self.capacity {
            return vec![];
        }
        if self.a1in.len() > self.capacity / 4 {
            let y = self.a1in.pop().expect("a tail");
            self.a1out.insert(0, y);
            self.a1out.truncate(self.capacity / 2);
            vec![y]
        } else {
            vec![self.am.pop().expect("a tail")]
        }
    }
}

impl Model for TwoQ {
    fn holds(&self, x: u64) -> bool {
        self.am.contains(&x) || self.a1in.contains(&x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        if take(&mut self.am, x) {
            self.am.insert(0, x);
            vec![]
        } else if take(&mut self.a1out, x) {
            let evicted = self.reclaim();
            self.am.insert(0, x);
            evicted
        } else if self.a1in.contains(&x) {
            vec![]
        } else {
            let evicted = self.reclaim();
            self.a1in.insert(0, x);
            evicted
        }
    }

    fn forget(&mut self, x: u64) {
        take(&mut self.am, x);
        take(&mut self.a1in, x);
    }
}

/// Figure 4 of the paper: ARC(c).
#[derive(Default)]
struct Arc {
    c: usize,
    p: f64,
    t1: Vec<u64>,
    t2: Vec<u64>,
    b1: Vec<u64>,
    b2: Vec<u64>,
}

impl Arc {
    fn replace(&mut self, x: u64) -> Vec<u64> {
        // Where blocks have left for other reasons there is room.
        if self.t1.len() + self.t2.len() < self.c {
            return vec![];
        }
        let t1 = self.t1.len() as f64;
        if t1 >= 1.0 && ((self.b2.contains(&x) && t1 == self.p) || t1 > self.p) {
            let y = self.t1.pop().expect("an LRU page");
            self.b1.insert(0, y);
            vec![y]
        } else {
            let y = self.t2.pop().expect("an LRU page");
            self.b2.insert(0, y);
            vec![y]
        }
    }
}

impl Model for Arc {
    fn holds(&self, x: u64) -> bool {
        self.t1.contains(&x) || self.t2.contains(&x)
    }

    fn request(&mut self, x: u64) -> Vec<u64> {
        let (c, b1, b2) = (self.c as f64, self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.insert(0, x);
            return vec![];
        }
        if self.b1.contains(&x) {
            let delta = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + delta).min(c);
            let evicted = self.replace(x);
            take(&mut self.b1, x);
            self.t2.insert(0, x);
            return evicted;
        }
        if self.b2.contains(&x) {
            let delta = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - delta).max(0.0);
            let evicted = self.replace(x);
            take(&mut self.b2, x);
            self.t2.insert(0, x);
            return evicted;
        }
        let mut evicted = vec![];
        let l1 = self.t1.len() + self.b1.len();
        let all = l1 + self.t2.len() + self.b2.len();
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.pop();
                evicted = self.replace(x);
            } else {
                evicted.extend(self.t1.pop());
            }
        } else if all >= self.c {
            if all == 2 * self.c {
                self.b2.pop();
            }
            evicted = self.replace(x);
        }
        self.t1.insert(0, x);
        evicted
    }

    fn forget(&mut self, x: u64) {
        take(&mut self.t1, x);
        take(&mut self.t2, x);
    }
}
