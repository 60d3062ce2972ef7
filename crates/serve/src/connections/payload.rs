//! The payloads of writes, which get their memory as their bytes arrive.
//!
//! A payload of up to 1 MiB has all of its buffer from the start. A larger one begins with
//! [`PAYLOAD_BYTES_FIRST`]. When that is full and more has come, it goes on in a larger buffer, if
//! there is memory that nobody waits for. Otherwise what has arrived is carried out as a part of
//! the write, and the next part begins. For that the memory that is reserved for its connection is
//! enough, once earlier parts are done.

use super::connection::{Pace, Payload};
use super::requests::RequestIndex;
use super::{CONNECTION_BYTES_RESERVED, ConnectionId, Connections, Step};
use imbrex_core::buffer::Buffers;
use imbrex_core::units::BLOCK_BYTES;

/// The first buffer of a payload that needs more than is reserved for its connection, and of each
/// further part. Two of them fit the reserve: one part is received while the last is written.
const PAYLOAD_BYTES_FIRST: u64 = CONNECTION_BYTES_RESERVED / 2;

/// How much larger the next buffer of a payload is, the best first. What has arrived is copied, so
/// many small steps would be slow.
const GROWTH: [u64; 2] = [8, 2];

/// The memory that a buffer of so many blocks takes: capacities are powers of two.
pub(super) fn bytes_of(blocks: u64) -> u64 {
    match blocks {
        0 => 0,
        blocks => blocks.next_power_of_two() * BLOCK_BYTES,
    }
}

/// The blocks of the first buffer for a payload of `all` blocks.
pub(super) fn first_blocks(all: u64) -> u64 {
    if bytes_of(all) <= CONNECTION_BYTES_RESERVED { all } else { PAYLOAD_BYTES_FIRST / BLOCK_BYTES }
}

impl Connections {
    /// The payload of a request comes next.
    pub(super) fn begin_payload(&mut self, id: ConnectionId, request: RequestIndex) {
        let pace = Pace::from(self.time.now());
        if let Some(connection) = self.get(id) {
            connection.payload = Payload::Write { request, filled: 0, pace };
        }
    }

    /// Moves what has been received of a payload to its place.
    pub(super) fn step_payload(&mut self, id: ConnectionId, buffers: &mut Buffers) -> Step {
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        let Payload::Write { request: index, mut filled, pace } = connection.payload else {
            return Step::Again;
        };
        let received = connection.input().len();
        let request = *self.requests.get(index);
        let (blocks, free) = request.free_blocks(filled, received);
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        let bytes = buffers.bytes_mut(blocks).expect("buffers of bytes");
        filled += connection.take(&mut bytes[free]);
        if filled == request.record.length_bytes as usize {
            connection.payload = Payload::None;
            let received = connection.received;
            return self.hand_over(index, received, buffers);
        }
        connection.payload = Payload::Write { request: index, filled, pace };
        // There is something left only when the buffer is full.
        if !connection.input().is_empty() {
            return self.make_room(id, index, buffers);
        }
        self.poller.count_part();
        Step::Input
    }

    /// Finds a place for more of a payload, whose buffer is full.
    fn make_room(&mut self, id: ConnectionId, index: RequestIndex, buffers: &mut Buffers) -> Step {
        let request = *self.requests.get(index);
        let (old, all) = (request.data, request.extent.blocks.0);
        if old.blocks == 0 {
            return self.begin_part(id, index, first_blocks(all), buffers);
        }
        let has = u64::from(old.blocks);
        let mut sizes = GROWTH.iter().map(|factor| all.min(factor * has));
        let granted = sizes.find(|size| {
            let more = bytes_of(*size) - bytes_of(has);
            self.memory.grow(id, more)
        });
        if let Some(blocks) = granted {
            let new = buffers.allocate(blocks);
            buffers.copy(old, new.part(0, has));
            buffers.release(old);
            self.requests.set_data(index, new);
            return Step::Again;
        }
        let rest = self.requests.split(index);
        self.begin_payload(id, rest);
        self.requests.arrive(index, buffers);
        Step::Arrived
    }

    /// Gets a buffer for the next part of a write.
    fn begin_part(
        &mut self,
        id: ConnectionId,
        index: RequestIndex,
        blocks: u64,
        buffers: &mut Buffers,
    ) -> Step {
        if !self.ask_memory(id, bytes_of(blocks)) {
            if let Some(connection) = self.get(id) {
                // Woken when it is its turn, and when an earlier part is over.
                connection.blocked = true;
            }
            return Step::Blocked;
        }
        self.requests.set_data(index, buffers.allocate(blocks));
        // The time that it has waited for us does not count.
        self.begin_payload(id, index);
        Step::Again
    }

    /// Asks for memory. False when the connection must wait.
    pub(super) fn ask_memory(&mut self, id: ConnectionId, bytes: u64) -> bool {
        let others_wait = self.memory.someone_waits();
        let granted = self.memory.ask(id, bytes);
        if others_wait {
            // One more, or one less, who waits may make it another's turn.
            self.admit_next();
        }
        granted
    }
}
