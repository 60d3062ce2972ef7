//! Who may hold how much memory for the data of requests.
//!
//! Each connection may always hold [`CONNECTION_BYTES_RESERVED`]. What it holds beyond that is
//! taken from [`BYTES_IN_FLIGHT_MAX`], which all connections share. A connection that finds too
//! little left waits, and waiters are served in the order of asking, with one exception: a waiter
//! whose request would bring it above an equal share of the memory lets the others go first. A
//! connection that holds nothing of the shared memory is never above its share, so a large request
//! gets its turn however small the share is. A payload that arrives gets more only while nobody
//! waits.
//!
//! Nobody waits in a circle, because whoever holds shared memory can give it back without getting
//! more:
//!
//! - A request that is here in full ends by itself.
//! - Answers end when their client takes them.
//! - A payload ends when its client sends it. When there is no more memory for it, the part that is
//!   here goes to the stack and gives its memory back. The next part fits the reserve of its own
//!   connection. What else holds that reserve came earlier on the same connection, and is one of
//!   these three.
//!
//! So the oldest request of all can always end. A client that does not do its part, while others
//! wait, is disconnected after [`PACE_MS`](super::PACE_MS).

use super::{BYTES_IN_FLIGHT_MAX, CONNECTION_BYTES_RESERVED, CONNECTIONS_MAX, ConnectionId};

/// Bytes of buffers that the requests of all clients hold, closed connections included.
const BYTES_MAX: u64 = BYTES_IN_FLIGHT_MAX + CONNECTIONS_MAX as u64 * CONNECTION_BYTES_RESERVED;

/// A connection whose next request waits for memory.
#[derive(Clone, Copy)]
struct Waiter {
    id: ConnectionId,
    /// What the request needs.
    bytes: u64,
}

/// The memory of all requests in flight, replies that have not left included.
#[derive(Default)]
pub(super) struct Memory {
    /// Bytes held by each connection, by the index of its place.
    held: Vec<u64>,
    /// Bytes held by requests whose connection has closed.
    orphaned: u64,
    /// All of these bytes.
    total: u64,
    /// Those of them that are shared: beyond the reserve of a connection, or orphaned.
    shared: u64,
    /// In the order of asking.
    waiting: Vec<Waiter>,
}

/// What `held` bytes of one connection take of the memory that all share.
fn shared_part(held: u64) -> u64 {
    held.saturating_sub(CONNECTION_BYTES_RESERVED)
}

impl Memory {
    /// What the requests of a connection hold.
    pub fn held(&self, id: ConnectionId) -> u64 {
        self.held.get(id.index as usize).copied().unwrap_or(0)
    }

    /// True when a connection holds memory that others could have.
    fn holds_shared(&self, id: ConnectionId) -> bool {
        shared_part(self.held(id)) > 0
    }

    /// True when there is not enough for the waiter whose turn it is.
    pub fn is_short(&self) -> bool {
        self.first().is_some_and(|first| !self.fits(first))
    }

    /// True when a connection holds memory that another one could have which waits.
    pub fn keeps_waiting(&self, id: ConnectionId) -> bool {
        self.holds_shared(id) && self.waiting.iter().any(|waiter| waiter.id != id)
    }

    pub fn someone_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes memory for the next request of a connection. False when the request must wait: the
    /// connection is then in line, and is to ask again when it is [`next`](Self::next).
    pub fn ask(&mut self, id: ConnectionId, bytes: u64) -> bool {
        let waiter = Waiter { id, bytes };
        let is_reserved = self.held(id) + bytes <= CONNECTION_BYTES_RESERVED;
        let waited = self.waiting.iter().position(|waiting| waiting.id == id);
        if waited.is_none() && self.fits(waiter) && (is_reserved || self.waiting.is_empty()) {
            self.take(id, bytes);
            return true;
        }
        let place = waited.unwrap_or_else(|| {
            self.waiting.push(waiter);
            self.waiting.len() - 1
        });
        let in_turn = is_reserved || self.first().is_some_and(|first| first.id == id);
        if !in_turn || !self.fits(waiter) {
            return false;
        }
        self.waiting.remove(place);
        self.take(id, bytes);
        true
    }

    /// Takes more memory for the payload that is arriving on a connection, if nobody waits for it.
    pub fn grow(&mut self, id: ConnectionId, bytes: u64) -> bool {
        let grants = self.waiting.is_empty() && self.fits(Waiter { id, bytes });
        if grants {
            self.take(id, bytes);
        }
        grants
    }

    /// Gives back what a request of an open connection held.
    pub fn give_back(&mut self, id: ConnectionId, bytes: u64) {
        // Who has never held anything has no entry.
        if bytes == 0 {
            return;
        }
        let held = &mut self.held[id.index as usize];
        self.shared -= shared_part(*held) - shared_part(*held - bytes);
        *held -= bytes;
        self.total -= bytes;
    }

    /// Gives back what a request of a closed connection held.
    pub fn give_back_orphaned(&mut self, bytes: u64) {
        self.orphaned -= bytes;
        self.shared -= bytes;
        self.total -= bytes;
    }

    /// A connection closes. What it still holds is given back as orphaned.
    pub fn close(&mut self, id: ConnectionId) {
        self.waiting.retain(|waiting| waiting.id != id);
        if let Some(held) = self.held.get_mut(id.index as usize) {
            let left = std::mem::take(held);
            self.orphaned += left;
            self.shared += left - shared_part(left);
        }
    }

    /// The waiter whose turn it is, when there is enough for it.
    pub fn next(&self) -> Option<ConnectionId> {
        let first = self.first()?;
        self.fits(first).then_some(first.id)
    }

    fn take(&mut self, id: ConnectionId, bytes: u64) {
        let index = id.index as usize;
        if self.held.len() <= index {
            self.held.resize(index + 1, 0);
        }
        let held = &mut self.held[index];
        self.shared += shared_part(*held + bytes) - shared_part(*held);
        *held += bytes;
        self.total += bytes;
    }

    fn fits(&self, waiter: Waiter) -> bool {
        let held = self.held(waiter.id);
        let more = shared_part(held + waiter.bytes) - shared_part(held);
        let has_room = more == 0 || self.shared + more <= BYTES_IN_FLIGHT_MAX;
        has_room && self.total + waiter.bytes <= BYTES_MAX
    }

    /// The waiter whose turn it is.
    fn first(&self) -> Option<Waiter> {
        if self.waiting.len() <= 1 {
            return self.waiting.first().copied();
        }
        let holders = self.held.iter().filter(|held| shared_part(**held) > 0);
        let others = self.waiting.iter().filter(|w| !self.holds_shared(w.id));
        let share = BYTES_IN_FLIGHT_MAX / (holders.count() + others.count()) as u64;
        let in_share = |waiter: &&Waiter| {
            let held = self.held(waiter.id);
            shared_part(held) == 0 || shared_part(held + waiter.bytes) <= share
        };
        let first = self.waiting.iter().find(in_share);
        first.or(self.waiting.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::CONNECTION_BYTES_MAX;
    use super::*;
    use std::collections::VecDeque;

    const MIB: u64 = 1 << 20;

    fn client(index: u32) -> ConnectionId {
        ConnectionId { index, generation: 0 }
    }

    #[test]
    fn what_is_reserved_is_there_whatever_the_others_hold() {
        let mut memory = Memory::default();
        for index in 0..CONNECTIONS_MAX as u32 {
            memory.ask(client(index), 32 * MIB);
        }
        assert_eq!(memory.shared, 3 * 31 * MIB, "three fit");
        for index in 3..CONNECTIONS_MAX as u32 {
            memory.close(client(index));
            assert!(memory.ask(client(index), MIB), "client {index}");
        }
        assert!(memory.ask(client(3), 3 * MIB), "what is left is shared");
        assert!(!memory.ask(client(4), MIB), "and now it is taken");
        assert_eq!(memory.total, 160 * MIB, "all there is");
    }

    /// Otherwise clients that come, ask and go could make a server with a slow disk grow.
    #[test]
    fn requests_of_closed_connections_count() {
        let mut memory = Memory::default();
        let granted = (0..1_000).take_while(|_| {
            let granted = memory.ask(client(0), MIB);
            if granted {
                memory.close(client(0));
            }
            granted
        });
        assert_eq!(granted.count() as u64 * MIB, BYTES_MAX);
        assert!(memory.is_short());
        memory.give_back_orphaned(MIB);
        assert_eq!(memory.next(), Some(client(0)));
        assert!(memory.ask(client(0), MIB));
    }

    /// One client sends requests of 32 MiB, three send requests of 2 MiB. Each sends the next as soon
    /// as it may, and requests end in the order in which they were let in.
    #[test]
    fn all_who_want_more_get_an_equal_share() {
        let size = |index: u32| if index == 0 { 32 * MIB } else { 2 * MIB };
        let mut memory = Memory::default();
        let (mut in_flight, mut granted) = (VecDeque::new(), [0; 4]);
        for _ in 0..10_000 {
            for index in 0..4 {
                while memory.held(client(index)) + size(index) <= CONNECTION_BYTES_MAX
                    && memory.ask(client(index), size(index))
                {
                    in_flight.push_back(index);
                    granted[index as usize] += size(index);
                }
            }
            let ended = in_flight.pop_front().expect("some request is in flight");
            memory.give_back(client(ended), size(ended));
        }
        let (least, most) = (granted.iter().min(), granted.iter().max());
        let ratio = *most.expect("four") as f64 / *least.expect("four") as f64;
        assert!(ratio < 2.0, "{granted:?}");
    }
}
