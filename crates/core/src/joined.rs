//! What layers over several nodes have in common that hold each block once: the parts into which a
//! request is split, and what each node still owes to a flush.

use crate::buffer::BufferSlice;
use crate::disk::{Geometry, LogSize, Media};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::map::Slab;
use crate::operation::{Operation, Request, Tag};
use crate::saved::SavedValue;
use crate::units::BlockCount;
use alloc::vec::Vec;
use core::fmt;

/// Nodes that can be joined at most.
pub const PORTS_MAX: usize = 64;

/// Why nodes cannot be joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// There is none, or there are more than [`PORTS_MAX`].
    Ports(usize),
    /// The node behind a port has zones that must be written in sequence.
    Zones(Port),
    /// The node behind a port has no room for one chunk of a stripe.
    NoChunk {
        /// Where the node is.
        port: Port,
        /// What it has.
        blocks: BlockCount,
        /// What it needs at least; never none.
        chunk: BlockCount,
    },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Ports(found) => {
                write!(f, "{found} nodes to join; accepted: 1 to {PORTS_MAX}")
            }
            JoinError::Zones(port) => write!(
                f,
                "node {} of those to be joined has zones that must be written in sequence; accepted: \
                 nodes that take writes anywhere",
                port.0
            ),
            JoinError::NoChunk { port, blocks, chunk } => write!(
                f,
                "node {} of those to be joined has {} B; accepted: a chunk of {} B or more",
                port.0,
                blocks.bytes(),
                chunk.bytes()
            ),
        }
    }
}

/// What nodes tell the node above when they are joined to one of `blocks` blocks: no bands, which
/// only some ways of joining keep.
///
/// # Errors
/// When there is none, there are too many, or one has zones that must be written in sequence.
pub(crate) fn joined(below: &[&Geometry], blocks: BlockCount) -> Result<Geometry, JoinError> {
    if !(1..=PORTS_MAX).contains(&below.len()) {
        return Err(JoinError::Ports(below.len()));
    }
    if let Some(index) = below.iter().position(|geometry| geometry.refuses_random_writes()) {
        return Err(JoinError::Zones(Port(index as u8)));
    }
    let is_alike = below.iter().all(|it| it.media == below[0].media);
    let media = match is_alike {
        true => below[0].media,
        false => Media::Conventional,
    };
    Ok(Geometry {
        log: joined_log(below),
        survives: below.iter().map(|it| it.survives).min().unwrap_or_default(),
        is_blank: below.iter().all(|it| it.is_blank),
        ..Geometry::plain(blocks, media)
    })
}

/// The smallest of the logs below; none where no node has one. Writes that all go to one node fill no
/// more than its log, and a log that is taken too small costs little.
fn joined_log(below: &[&Geometry]) -> Option<LogSize> {
    below.iter().filter_map(|it| it.log).reduce(|a, b| LogSize {
        blocks: a.blocks.min(b.blocks),
        entries: match (a.entries, b.entries) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
    })
}

/// What a node below owes to flushes.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Owed {
    /// What the layer uses of the node.
    blocks: BlockCount,
    /// Writes that were answered and are not durable by themselves.
    written: u64,
    /// How many of these a flush has covered.
    flushed: u64,
    /// A flush that failed. The node may have reported it once, so no later one is believed.
    failed: Option<IoError>,
}

/// A request that is split into parts.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Job {
    request: Request,
    /// Parts that have not ended.
    parts: u32,
    result: Result<(), IoError>,
}

/// A part of a request.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(crate) struct Part {
    /// The request, as [`Parts::begin`] has named it.
    pub job: u32,
    /// The node that the part goes to.
    pub port: Port,
    /// The blocks there; empty for a flush of everything.
    pub extent: Extent,
    /// The data, as long as the extent; empty when none is moved.
    pub buffer: BufferSlice,
}

/// The requests that a layer has split, and the operations below that they wait for.
///
/// A request is answered once, when all of its parts have ended; the first error counts. A flush that
/// has failed at a node makes all later ones of that node fail. A flush of a lost node fails where the
/// node had taken writes that no flush has covered. A flush that names some blocks of a node covers none:
/// a node that is several joined ones passes it on to those that have the blocks.
#[derive(Debug, SavedValue)]
pub(crate) struct Parts {
    owed: Vec<Owed>,
    jobs: Slab<Job>,
    /// With each part: of a flush, the writes of the node that it covers.
    under_way: Slab<(Part, u64)>,
}

impl Parts {
    /// For a layer that uses so many blocks of each node.
    pub fn new(used: impl Iterator<Item = BlockCount>) -> Parts {
        let nothing = |blocks| Owed { blocks, written: 0, flushed: 0, failed: None };
        Parts {
            owed: used.map(nothing).collect(),
            jobs: Slab::default(),
            under_way: Slab::default(),
        }
    }

    /// Takes a request that ends with so many parts. Each of them is [issued](Self::issue), and then
    /// the layer says that [all are](Self::all_are_issued).
    pub fn begin(&mut self, request: Request, parts: usize) -> u32 {
        self.jobs.add(Job { request, parts: parts as u32, result: Ok(()) })
    }

    /// Sends a part to its node.
    pub fn issue(&mut self, part: Part, ctx: &mut Context<'_>) {
        let owed = self.owed[usize::from(part.port.0)];
        let Request { operation, cause, .. } = self.jobs[part.job].request;
        if ctx.is_lost(part.port) {
            // There is nothing to flush any more, unless something was answered that is gone.
            let is_error = operation != Operation::Flush || owed.flushed < owed.written;
            return self.count(part.job, if is_error { Err(IoError::Lost) } else { Ok(()) });
        }
        let place = self.under_way.add((part, owed.written));
        ctx.issue(Issue {
            port: part.port,
            operation,
            extent: part.extent,
            buffer: part.buffer,
            cause,
            tag: Tag(u64::from(place)),
        });
    }

    /// Answers a request whose parts have all ended where they were issued.
    pub fn all_are_issued(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.answer_if_done(job, ctx);
    }

    /// The part that has completed, with its request.
    pub fn part_of(&self, tag: Tag) -> (Part, Request) {
        let (part, _) = self.under_way[tag.0 as u32];
        (part, self.jobs[part.job].request)
    }

    /// Ends a part, and answers its request if it was the last one.
    pub fn end(&mut self, tag: Tag, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let (part, covers) = self.under_way.take(tag.0 as u32);
        let result = self.judge(part, covers, result);
        self.count(part.job, result);
        self.answer_if_done(part.job, ctx);
    }

    /// A lost node is there again. It holds nothing, and the layer that takes it knows that.
    pub fn replaced(&mut self, port: Port) {
        let owed = &mut self.owed[usize::from(port.0)];
        (owed.flushed, owed.failed) = (owed.written, None);
    }

    /// Takes the result of a part into account; the first error counts.
    fn count(&mut self, job: u32, result: Result<(), IoError>) {
        let job = &mut self.jobs[job];
        job.parts -= 1;
        job.result = job.result.and(result);
    }

    fn answer_if_done(&mut self, index: u32, ctx: &mut Context<'_>) {
        if self.jobs[index].parts == 0 {
            let Job { request, result, .. } = self.jobs.take(index);
            ctx.finish(request.id, result);
        }
    }

    /// What has become of a part, with what that means for the flushes of its node.
    fn judge(
        &mut self,
        part: Part,
        covers: u64,
        result: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let operation = self.jobs[part.job].request.operation;
        let owed = &mut self.owed[usize::from(part.port.0)];
        match (operation, result) {
            (Operation::Write { .. } | Operation::Zero { .. }, Ok(())) => {
                owed.written += u64::from(!operation.is_durable());
                result
            }
            (Operation::Flush, Err(IoError::Lost)) if owed.flushed >= covers => Ok(()),
            (Operation::Flush, Err(error)) => {
                owed.failed.get_or_insert(error);
                result
            }
            (Operation::Flush, Ok(())) => match owed.failed {
                Some(error) => Err(error),
                None => {
                    if part.extent.is_empty() || part.extent.blocks == owed.blocks {
                        owed.flushed = owed.flushed.max(covers);
                    }
                    result
                }
            },
            _ => result,
        }
    }
}
