//! Requests in flight, from their bytes to operations on blocks and back.
//!
//! The stack knows whole blocks only. A read is widened to the blocks it touches and a trim
//! narrowed to the blocks it covers. A write that covers a part of a block first reads the blocks
//! at its edges. From its arrival until its last operation has been handed to the stack it holds
//! a lock on its blocks, and whatever arrives for them meanwhile waits. Afterwards the locks of
//! the stack keep the order.
//!
//! A large write for which there is too little memory is carried out in parts. Each part is a
//! request of its own, as soon as its bytes are here. Whoever reads its blocks before it is
//! answered may therefore see some parts of it and not the others. A lock on all its blocks would
//! prevent that, but then those who wait for the blocks would wait for a client to send the rest.

use super::{ConnectionId, RequestRecord};
use crate::nbd::transmission::Command;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::map::{ExtentLocks, Slab};
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use std::collections::VecDeque;
use std::ops::Range;

/// A request of a client, from the moment its header was read.
#[derive(Clone, Copy)]
pub(super) struct ClientRequest {
    pub connection: ConnectionId,
    pub cookie: u64,
    pub command: Command,
    pub record: RequestRecord,
    /// The blocks it touches.
    pub extent: Extent,
    /// Its data, as long as the extent; empty when it has none. Shorter while a payload arrives.
    pub data: BufferSlice,
    /// The write of which this is a part.
    pub part_of: Option<RequestIndex>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its payload is still arriving, or it waits for another request.
    Waiting,
    /// The blocks at its edges are being read.
    Edges,
    /// The stack has the last of it.
    Last,
    /// It is carried out in parts.
    Parts,
}

struct InFlight {
    request: ClientRequest,
    /// The blocks it covers in part, the first and then the last.
    edges: BufferSlice,
    stage: Stage,
    locked: bool,
    /// Operations in the stack, or parts that are not over.
    operations: u32,
    error: Option<IoError>,
    /// The rest of its payload will not come, so there is nobody to answer.
    is_abandoned: bool,
}

/// What the end of a part means for the whole write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parts {
    /// Others are under way, or still to arrive.
    Left,
    /// It was the last one: the write is to be answered.
    Over,
    /// It was the last one of a write that nobody waits for.
    Abandoned,
}

/// Every request that has arrived and is not yet answered.
#[derive(Default)]
pub(super) struct Requests {
    slots: Slab<Option<InFlight>>,
    gate: ExtentLocks<u32>,
    granted: Vec<u32>,
    ready: VecDeque<Arrival>,
}

/// Names a request in [`Requests`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RequestIndex(u32);

impl ClientRequest {
    /// Where in the data the bytes of the client begin.
    pub fn data_offset(&self) -> usize {
        (self.record.offset_bytes % BLOCK_BYTES) as usize
    }

    /// Where in the data the bytes of the client end.
    pub fn data_end(&self) -> usize {
        self.data_offset() + self.record.length_bytes as usize
    }

    /// Where in the data the next bytes of the client go when `filled` are there, as far as there
    /// is a buffer for them.
    pub fn free_data(&self, filled: usize) -> Range<usize> {
        let end = self.data.blocks as usize * BLOCK_BYTES as usize;
        // The part that has no buffer yet begins with a block.
        self.data_offset() + filled..self.data_end().min(end)
    }

    /// The blocks that [`free_data`](Self::free_data) touches, at most `bytes` of it, and where in them it
    /// is. Whoever writes to other blocks makes their checksums be taken again.
    pub fn free_blocks(&self, filled: usize, bytes: usize) -> (BufferSlice, Range<usize>) {
        let block = BLOCK_BYTES as usize;
        let Range { start, end } = self.free_data(filled);
        let end = end.min(start.saturating_add(bytes));
        let first = start / block;
        let blocks = end.div_ceil(block) - first;
        let at = first * block;
        let part = self.data.part(first as u64, blocks as u64);
        (part, start - at..end - at)
    }

    fn head_bytes(&self) -> usize {
        self.data_offset()
    }

    /// Bytes of the client in the last block, when they do not fill it.
    fn tail_bytes(&self) -> usize {
        ((self.record.offset_bytes + u64::from(self.record.length_bytes)) % BLOCK_BYTES) as usize
    }

    /// The blocks that must be read before the request can be carried out, at most two.
    fn edges(&self) -> impl Iterator<Item = Extent> + use<> {
        let changes = matches!(self.command, Command::Write { .. } | Command::WriteZeroes { .. });
        let (first, last) = (self.extent.start.0, self.extent.end().0.wrapping_sub(1));
        let head = changes && (self.head_bytes() > 0 || (first == last && self.tail_bytes() > 0));
        let tail = changes && first != last && self.tail_bytes() > 0;
        let head = head.then_some(Extent::new(first, 1));
        head.into_iter().chain(tail.then(|| Extent::new(last, 1)))
    }
}

/// The blocks a command touches; for a trim, those it covers whole. No bytes touch no block.
pub(super) fn extent_of(command: Command, offset_bytes: u64, length_bytes: u32) -> Extent {
    if length_bytes == 0 {
        return Extent::EMPTY;
    }
    let end_bytes = offset_bytes + u64::from(length_bytes);
    let (first, end) = match command {
        Command::Trim { .. } => (offset_bytes.div_ceil(BLOCK_BYTES), end_bytes / BLOCK_BYTES),
        _ => (offset_bytes / BLOCK_BYTES, end_bytes.div_ceil(BLOCK_BYTES)),
    };
    Extent::new(first, end.saturating_sub(first))
}

impl Requests {
    pub fn in_flight(&self) -> u32 {
        self.slots.len()
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next operation for the stack.
    #[inline]
    pub fn pop_ready(&mut self) -> Option<Arrival> {
        self.ready.pop_front()
    }

    /// Takes a request whose payload may still be on its way.
    #[inline]
    pub fn insert(&mut self, request: ClientRequest) -> RequestIndex {
        let entry = Some(InFlight {
            request,
            edges: BufferSlice::EMPTY,
            stage: Stage::Waiting,
            locked: false,
            operations: 0,
            error: None,
            is_abandoned: false,
        });
        RequestIndex(self.slots.add(entry))
    }

    #[inline]
    pub fn get(&self, index: RequestIndex) -> &ClientRequest {
        &self.slots[index.0].as_ref().expect(IN_FLIGHT).request
    }

    /// Gives a request another buffer; the old one is the caller's to release.
    pub fn set_data(&mut self, index: RequestIndex, data: BufferSlice) {
        self.entry(index.0).request.data = data;
    }

    #[inline]
    fn entry(&mut self, index: u32) -> &mut InFlight {
        self.slots[index].as_mut().expect(IN_FLIGHT)
    }

    /// Notes when the last byte of a request was received, be it that of its last part.
    pub fn received(&mut self, index: RequestIndex, at: Instant) -> RequestRecord {
        let index = self.get(index).part_of.unwrap_or(index);
        let entry = self.entry(index.0);
        entry.request.record.arrived = at;
        entry.request.record
    }

    /// Lets a request go to the stack as soon as those before it allow.
    #[inline]
    pub fn arrive(&mut self, index: RequestIndex, buffers: &mut Buffers) {
        let entry = self.slots[index.0].as_mut().expect(IN_FLIGHT);
        let extent = match entry.request.command {
            // It covers only what has completed, so it waits for nothing.
            Command::Flush => Extent::EMPTY,
            _ => entry.request.extent,
        };
        if entry.request.edges().next().is_some() || self.gate.overlaps(extent) {
            entry.locked = true;
            if !self.gate.lock(index.0, extent) {
                return;
            }
        }
        self.start(index.0, buffers);
    }

    /// Makes a part of what has arrived of a write whose buffer is full, and another one, returned,
    /// of the rest, which has no buffer yet.
    pub fn split(&mut self, index: RequestIndex) -> RequestIndex {
        let mut first = *self.get(index);
        let whole = first.part_of.unwrap_or_else(|| {
            let whole = self.insert(ClientRequest { data: BufferSlice::EMPTY, ..first });
            let entry = self.entry(whole.0);
            entry.stage = Stage::Parts;
            entry.operations = 1;
            whole
        });
        self.entry(whole.0).operations += 1;
        first.part_of = Some(whole);
        let mut rest = first;
        let cut = first.extent.start + BlockCount(u64::from(first.data.blocks));
        rest.extent = Extent::between(cut, first.extent.end());
        first.extent = Extent::between(first.extent.start, cut);
        let cut_bytes = cut.0 * BLOCK_BYTES;
        let first_bytes = (cut_bytes - first.record.offset_bytes) as u32;
        rest.record.offset_bytes = cut_bytes;
        rest.record.length_bytes -= first_bytes;
        first.record.length_bytes = first_bytes;
        rest.data = BufferSlice::EMPTY;
        self.entry(index.0).request = first;
        self.insert(rest)
    }

    /// The rest of a write in parts will not arrive.
    pub fn abandon(&mut self, whole: RequestIndex) {
        self.entry(whole.0).is_abandoned = true;
    }

    /// A part of `whole` is over.
    pub fn end_part(&mut self, whole: RequestIndex, result: Result<(), IoError>) -> Parts {
        let entry = self.entry(whole.0);
        entry.operations -= 1;
        if let Err(error) = result {
            entry.error.get_or_insert(error);
        }
        match entry.operations {
            0 if entry.is_abandoned => Parts::Abandoned,
            0 => Parts::Over,
            _ => Parts::Left,
        }
    }

    /// Notes the end of an operation. Returns its request when that was the last one of it.
    #[inline]
    pub fn complete(
        &mut self,
        completion: Completion,
        buffers: &mut Buffers,
    ) -> Option<RequestIndex> {
        let index = completion.tag.0 as u32;
        let entry = self.slots[index].as_mut().expect(IN_FLIGHT);
        entry.operations -= 1;
        if let Err(error) = completion.result {
            entry.error.get_or_insert(error);
        }
        if entry.operations > 0 {
            return None;
        }
        if entry.stage == Stage::Edges && entry.error.is_none() {
            self.submit_merged(index, buffers);
            self.unlock(index, buffers);
            return None;
        }
        if entry.stage == Stage::Edges {
            self.unlock(index, buffers);
        }
        Some(RequestIndex(index))
    }

    /// Forgets a request. The data is the caller's to release.
    #[inline]
    pub fn remove(
        &mut self,
        index: RequestIndex,
        buffers: &mut Buffers,
    ) -> (ClientRequest, Result<(), IoError>) {
        let entry = self.slots[index.0].take().expect(IN_FLIGHT);
        self.slots.remove(index.0);
        buffers.release(entry.edges);
        (entry.request, entry.error.map_or(Ok(()), Err))
    }

    fn start(&mut self, index: u32, buffers: &mut Buffers) {
        let entry = self.slots[index].as_mut().expect(IN_FLIGHT);
        let ClientRequest { command, extent, data, .. } = entry.request;
        let mut edges = entry.request.edges();
        if let Some(first) = edges.next() {
            let second = edges.next();
            let count = 1 + u64::from(second.is_some());
            let buffer = buffers.allocate(count);
            entry.edges = buffer;
            entry.stage = Stage::Edges;
            for (place, extent) in [Some(first), second].into_iter().flatten().enumerate() {
                let part = buffer.part(place as u64, 1);
                self.submit(index, Operation::Read, extent, part);
            }
            return;
        }
        entry.stage = Stage::Last;
        self.submit(index, operation_of(command), extent, data);
        self.unlock(index, buffers);
    }

    /// Puts what was read at the edges and what the client sent together, and submits the result.
    fn submit_merged(&mut self, index: u32, buffers: &mut Buffers) {
        let entry = self.slots[index].as_mut().expect(IN_FLIGHT);
        entry.stage = Stage::Last;
        let InFlight { request, edges, .. } = *entry;
        let operation = operation_of(request.command);
        let block = BLOCK_BYTES as usize;
        let edge_extents: [Option<Extent>; 2] = {
            let mut extents = request.edges();
            [extents.next(), extents.next()]
        };
        if let Command::Write { .. } = request.command {
            for (place, extent) in edge_extents.into_iter().flatten().enumerate() {
                let mut old = [0; BLOCK_BYTES as usize];
                let part = edges.part(place as u64, 1);
                old.copy_from_slice(buffers.bytes(part).expect(BYTES));
                let at = extent.start.offset_from(request.extent.start) as usize * block;
                let data = buffers.bytes_mut(request.data).expect(BYTES);
                let kept_before = request.data_offset().clamp(at, at + block);
                let kept_after = request.data_end().clamp(at, at + block);
                data[at..kept_before].copy_from_slice(&old[..kept_before - at]);
                data[kept_after..at + block].copy_from_slice(&old[kept_after - at..]);
            }
            self.submit(index, operation, request.extent, request.data);
            return;
        }
        let mut middle = request.extent;
        for (place, extent) in edge_extents.into_iter().flatten().enumerate() {
            let part = edges.part(place as u64, 1);
            let at = extent.start.offset_from(request.extent.start) as usize * block;
            let from = request.data_offset().clamp(at, at + block) - at;
            let to = request.data_end().clamp(at, at + block) - at;
            buffers.bytes_mut(part).expect(BYTES)[from..to].fill(0);
            let write = Operation::Write { durability: durability_of(request.command) };
            self.submit(index, write, extent, part);
            middle.blocks.0 -= 1;
            if extent.start == middle.start {
                middle.start.0 += 1;
            }
        }
        if !middle.is_empty() {
            self.submit(index, operation, middle, BufferSlice::EMPTY);
        }
    }

    #[inline]
    fn submit(&mut self, index: u32, operation: Operation, extent: Extent, buffer: BufferSlice) {
        let entry = self.slots[index].as_mut().expect(IN_FLIGHT);
        entry.operations += 1;
        self.ready.push_back(Arrival { tag: Tag(u64::from(index)), operation, extent, buffer });
    }

    /// Gives up the lock of a request that has one, and starts those that waited for it alone.
    #[inline]
    fn unlock(&mut self, index: u32, buffers: &mut Buffers) {
        let entry = self.slots[index].as_mut().expect(IN_FLIGHT);
        if !std::mem::take(&mut entry.locked) {
            return;
        }
        let mut granted = std::mem::take(&mut self.granted);
        self.gate.unlock(index, |index| granted.push(index));
        for index in granted.drain(..) {
            self.start(index, buffers);
        }
        // A request that was started may have unlocked in turn and left a list behind.
        if self.granted.capacity() < granted.capacity() {
            self.granted = granted;
        }
    }
}

const IN_FLIGHT: &str = "the request is in flight";
const BYTES: &str = "the buffers of a server hold bytes";

fn durability_of(command: Command) -> Durability {
    match command {
        Command::Write { durability }
        | Command::Trim { durability }
        | Command::WriteZeroes { durability, .. } => durability,
        Command::Read | Command::Flush | Command::Disconnect => Durability::Cached,
    }
}

/// What a command asks of the stack.
pub(super) fn operation_of(command: Command) -> Operation {
    match command {
        Command::Read => Operation::Read,
        Command::Write { durability } => Operation::Write { durability },
        Command::Trim { durability } => Operation::Zero { durability, may_unmap: true },
        Command::WriteZeroes { durability, may_unmap } => Operation::Zero { durability, may_unmap },
        Command::Flush | Command::Disconnect => Operation::Flush,
    }
}
