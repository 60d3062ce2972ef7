//! Nodes as one node whose chunks go round over them: RAID level 0 (Patterson, Gibson and Katz, "A Case
//! for Redundant Arrays of Inexpensive Disks", SIGMOD 1988), as Le's thesis places single blocks.

use crate::buffer::BufferSlice;
use crate::command::{CommandId, OnReplacement};
use crate::counters::Gauge;
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::joined::{JoinError, Part, Parts, joined};
use crate::layer::{Context, Layer, Port};
use crate::lifecycle::Start;
use crate::operation::{Completion, Operation, Request};
use crate::planted::PlantedBug;
use crate::saved::Saved;
use crate::units::{BlockCount, Lba};

/// Where the blocks of a stripe lie: chunk k on node k modulo n, at chunk k div n there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeLayout {
    nodes: u64,
    chunk_blocks: u64,
}

impl StripeLayout {
    /// Chunks of `chunk` over so many nodes. Panics when there is no node, or nothing in a chunk.
    pub fn new(nodes: usize, chunk: BlockCount) -> StripeLayout {
        assert!(nodes > 0 && chunk.0 > 0, "a stripe of nothing");
        StripeLayout { nodes: nodes as u64, chunk_blocks: chunk.0 }
    }

    /// Blocks of each node that are used when the smallest has so many: whole chunks.
    pub fn used_of_each(&self, smallest: BlockCount) -> BlockCount {
        BlockCount(smallest.0 - smallest.0 % self.chunk_blocks)
    }

    /// The node that holds a block, and the address there.
    pub fn place_of(&self, block: Lba) -> (usize, Lba) {
        let (chunk, offset) = (block.0 / self.chunk_blocks, block.0 % self.chunk_blocks);
        let inside = chunk / self.nodes * self.chunk_blocks + offset;
        ((chunk % self.nodes) as usize, Lba(inside))
    }

    /// The block that a node holds at an address.
    pub fn block_at(&self, node: usize, inside: Lba) -> Lba {
        let (row, offset) = (inside.0 / self.chunk_blocks, inside.0 % self.chunk_blocks);
        Lba((row * self.nodes + node as u64) * self.chunk_blocks + offset)
    }

    /// The nodes that hold blocks of an extent, each with its blocks: they are one run there. Nodes with
    /// more chunks come before those with fewer.
    pub fn parts_of(self, extent: Extent) -> impl Iterator<Item = (usize, Extent)> {
        let first = extent.start.0 / self.chunk_blocks;
        // An empty extent has no part.
        let chunks = match extent.is_empty() {
            true => 0,
            false => (extent.end().0 - 1) / self.chunk_blocks - first + 1,
        };
        (0..chunks.min(self.nodes)).map(move |index| {
            let later_rows = (chunks - 1 - index) / self.nodes;
            let (from, to) = (first + index, first + index + later_rows * self.nodes);
            let start = extent.start.0.max(from * self.chunk_blocks);
            let last = (extent.end().0 - 1).min(to * self.chunk_blocks + self.chunk_blocks - 1);
            let (node, start) = self.place_of(Lba(start));
            let (_, last) = self.place_of(Lba(last));
            (node, Extent::new(start.0, last.0 - start.0 + 1))
        })
    }

    /// The pieces of a run of blocks of a node, a piece for each chunk: its first block in the addresses
    /// of the stripe, and its length.
    fn pieces_of(self, node: usize, inside: Extent) -> impl Iterator<Item = (Lba, u64)> {
        let mut at = inside.start.0;
        core::iter::from_fn(move || {
            let left = inside.end().0 - at;
            let length = left.min(self.chunk_blocks - at % self.chunk_blocks);
            let piece = (self.block_at(node, Lba(at)), length);
            at += length;
            (length > 0).then_some(piece)
        })
    }
}

/// Nodes as one node whose chunks go round over them.
///
/// A request is one operation of each node that it touches, and is answered once. Where a node has
/// several chunks of it, the data goes through a buffer of the stripe's own, because an operation has
/// one run of a buffer. A flush that bears blocks goes to the nodes that have them, another one to all.
///
/// The stripe is lost with the first of its nodes. What is left is every n-th chunk, of which no file
/// system can be mounted; a stripe that went on would take writes of which a part is gone.
#[derive(Debug, Saved)]
pub struct Stripe {
    #[saved(keep)]
    layout: StripeLayout,
    #[saved(keep)]
    nodes: usize,
    /// Blocks of the nodes that are in no chunk of the stripe.
    #[saved(keep)]
    unused: BlockCount,
    parts: Parts,
}

impl Stripe {
    /// Chunks of `chunk` that go round over the nodes `below`, and what these tell the node above
    /// together. As much of each is used as of the smallest, in whole chunks. Bands do not show: the
    /// blocks of a band of one node are scattered over the addresses of the stripe.
    ///
    /// # Errors
    /// When there is no node, there are too many, one has zones that must be written in sequence, or one
    /// has no room for a chunk. Panics when the chunk has no blocks.
    pub fn new(below: &[&Geometry], chunk: BlockCount) -> Result<(Stripe, Geometry), JoinError> {
        let geometry = joined(below, BlockCount::ZERO)?;
        let layout = StripeLayout::new(below.len(), chunk);
        let of_each = |it: &&Geometry| layout.used_of_each(it.blocks);
        if let Some(index) = below.iter().position(|it| of_each(it).0 == 0) {
            return Err(JoinError::NoChunk {
                port: Port(index as u8),
                blocks: below[index].blocks,
                chunk,
            });
        }
        let used = below.iter().map(of_each).min().unwrap_or_default();
        let geometry = Geometry { blocks: BlockCount(used.0 * below.len() as u64), ..geometry };
        let offered: u64 = below.iter().map(|it| it.blocks.0).sum();
        let stripe = Stripe {
            layout,
            nodes: below.len(),
            unused: BlockCount(offered - geometry.blocks.0),
            parts: Parts::new(below.iter().map(|_| used)),
        };
        Ok((stripe, geometry))
    }

    /// Sends a flush that bears no blocks to all nodes.
    fn flush_all(&mut self, request: Request, ctx: &mut Context<'_>) {
        let nodes = match ctx.is_planted(PlantedBug::StripeFlushesFirstAlone) {
            true => 1,
            false => self.nodes,
        };
        let job = self.parts.begin(request, nodes);
        for node in 0..nodes {
            let part = Part {
                job,
                port: Port(node as u8),
                extent: Extent::EMPTY,
                buffer: BufferSlice::EMPTY,
            };
            self.parts.issue(part, ctx);
        }
        self.parts.all_are_issued(job, ctx);
    }

    /// The buffer of the part of a request that a node has: a part of that of the request where it is one
    /// run there, and the stripe's own where it is scattered.
    fn buffer_of(
        &self,
        node: usize,
        inside: Extent,
        request: &Request,
        ctx: &mut Context<'_>,
    ) -> BufferSlice {
        if !request.operation.has_data() {
            return request.buffer;
        }
        let first = self.layout.block_at(node, inside.start);
        let last = self.layout.block_at(node, Lba(inside.end().0 - 1));
        if last.0 - first.0 + 1 == inside.blocks.0 {
            let at = first.0 - request.extent.start.0;
            return request.buffer.part(at, inside.blocks.0);
        }
        let own = ctx.allocate(inside.blocks);
        if request.operation != Operation::Read {
            for (theirs, ours) in self.pieces(node, inside, own, request) {
                ctx.copy(theirs, ours);
            }
        }
        own
    }

    /// Where data that is scattered in the buffer of a request stands there, and where in the buffer of
    /// its part.
    fn pieces(
        &self,
        node: usize,
        inside: Extent,
        own: BufferSlice,
        request: &Request,
    ) -> impl Iterator<Item = (BufferSlice, BufferSlice)> + use<> {
        let (start, buffer) = (request.extent.start.0, request.buffer);
        let mut at = 0;
        let pieces = self.layout.pieces_of(node, inside);
        pieces.map(move |(block, length)| {
            let ours = own.part(at, length);
            at += length;
            (buffer.part(block.0 - start, length), ours)
        })
    }
}

impl Layer for Stripe {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        if ctx.has_lost_port() {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        if request.extent.is_empty() {
            return self.flush_all(request, ctx);
        }
        let parts = self.layout.parts_of(request.extent);
        let job = self.parts.begin(request, parts.count());
        // Nodes with several chunks come first, so that no disk holds a part of the request's buffer
        // while data is copied out of it.
        for (node, extent) in self.layout.parts_of(request.extent) {
            let part = Part {
                job,
                port: Port(node as u8),
                extent,
                buffer: self.buffer_of(node, extent, &request, ctx),
            };
            self.parts.issue(part, ctx);
        }
        self.parts.all_are_issued(job, ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let (part, request) = self.parts.part_of(completion.tag);
        let own = part.buffer;
        if own.blocks > 0 && own.buffer() != request.buffer.buffer() {
            if request.operation == Operation::Read && completion.result.is_ok() {
                let node = usize::from(part.port.0);
                for (theirs, ours) in self.pieces(node, part.extent, own, &request) {
                    ctx.copy(ours, theirs);
                }
            }
            ctx.release(own);
        }
        self.parts.end(completion.tag, completion.result, ctx);
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::UnusedBytes, self.unused.bytes());
        ctx.opened(ctx.nothing_lost());
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn replaced(&mut self, port: Port, _command: CommandId, ctx: &mut Context<'_>) {
        self.parts.replaced(port);
        if ctx.has_lost_port() {
            ctx.lose();
        }
    }

    fn status(&self, facts: &mut alloc::vec::Vec<(&'static str, u64)>) {
        facts.push(("nodes", self.nodes as u64));
        facts.push(("unused_bytes", self.unused.bytes()));
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
