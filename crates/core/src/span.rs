//! Nodes one after another as one node, so that several stand under one top.

use crate::command::{CommandId, OnReplacement};
use crate::disk::{Geometry, LogSize, Media};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::lifecycle::{OpenError, Start};
use crate::map::{BandId, BandTable};
use crate::operation::{Completion, Operation, Request, RequestId, Tag};
use crate::units::BlockCount;
use crate::zone::ZoneModel;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Nodes below a span at most.
pub const PORTS_MAX: usize = 64;

/// Why nodes cannot be joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanError {
    /// There is none, or there are more than [`PORTS_MAX`].
    Ports(usize),
    /// The node behind a port has zones that must be written in sequence.
    Zones(Port),
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpanError::Ports(found) => {
                write!(f, "{found} nodes to join; accepted: 1 to {PORTS_MAX}")
            }
            SpanError::Zones(port) => write!(
                f,
                "node {} of those to be joined has zones that must be written in sequence; accepted: \
                 nodes that take writes anywhere",
                port.0
            ),
        }
    }
}

/// The blocks of a span that a node below holds.
#[derive(Debug)]
struct Window {
    /// In the addresses of the span.
    extent: Extent,
    /// Writes that were answered and are not durable by themselves.
    written: u64,
    /// How many of these a flush has covered.
    flushed: u64,
    /// A flush that failed. The node may have reported it once, so no later one is believed.
    failed: Option<IoError>,
}

impl Window {
    /// True when something was answered that no flush has covered since.
    fn is_dirty(&self) -> bool {
        self.flushed < self.written
    }
}

/// A request that is split at the borders of windows.
#[derive(Clone, Copy, Debug)]
struct Job {
    request: RequestId,
    operation: Operation,
    /// Operations below that have not ended.
    parts: u32,
    result: Result<(), IoError>,
}

/// An operation below.
#[derive(Clone, Copy, Debug)]
struct Part {
    job: u32,
    port: Port,
    /// Of a flush: the writes of the window that it covers.
    covers: u64,
}

/// Nodes joined one after another: each is a window of the span.
///
/// A request that crosses a border is split and answered once. A flush that bears blocks goes to the
/// windows that have them, another one to all. A lost node costs its window only: reads and writes
/// there fail, and so does a flush of everything where the window held writes that no flush had
/// covered. When a flush of a window has failed, all later ones of it do.
#[derive(Debug)]
pub struct Span {
    windows: Vec<Window>,
    jobs: Vec<Option<Job>>,
    free_jobs: Vec<u32>,
    parts: Vec<Option<Part>>,
    free_parts: Vec<u32>,
}

impl Span {
    /// The nodes `below` one after another, and what they tell the node above together.
    ///
    /// # Errors
    /// When there is none, there are too many, or one has zones that must be written in sequence.
    pub fn new(below: &[&Geometry]) -> Result<(Span, Geometry), SpanError> {
        if !(1..=PORTS_MAX).contains(&below.len()) {
            return Err(SpanError::Ports(below.len()));
        }
        let must_be_written_in_sequence = |geometry: &&Geometry| {
            let zones = geometry.zones.as_ref();
            zones.is_some_and(|zones| zones.model == ZoneModel::HostManaged)
        };
        if let Some(index) = below.iter().position(must_be_written_in_sequence) {
            return Err(SpanError::Zones(Port(index as u8)));
        }
        let mut windows = Vec::with_capacity(below.len());
        let mut end = 0;
        for geometry in below {
            windows.push(Window {
                extent: Extent::new(end, geometry.blocks.0),
                written: 0,
                flushed: 0,
                failed: None,
            });
            end += geometry.blocks.0;
        }
        let is_alike = below.iter().all(|it| it.media == below[0].media);
        let geometry = Geometry {
            bands: joined_bands(below).map(Arc::new),
            log: joined_log(below),
            survives: below.iter().map(|it| it.survives).min().unwrap_or_default(),
            ..Geometry::plain(
                BlockCount(end),
                match is_alike {
                    true => below[0].media,
                    false => Media::Conventional,
                },
            )
        };
        let span = Span {
            windows,
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
        };
        Ok((span, geometry))
    }

    /// The windows, in the order of the ports, in the addresses of the span.
    pub fn windows(&self) -> impl Iterator<Item = Extent> + '_ {
        self.windows.iter().map(|window| window.extent)
    }

    /// Sends the part of a request that a window has.
    fn issue_part(&mut self, job: u32, index: usize, request: &Request, ctx: &mut Context<'_>) {
        let window = &self.windows[index];
        let port = Port(index as u8);
        let is_flush = request.operation == Operation::Flush;
        let inside = match (is_flush, request.extent.is_empty()) {
            (true, true) => Extent::EMPTY,
            _ => (request.extent.intersection(window.extent)).expect("a part inside of its window"),
        };
        let covers = window.written;
        if ctx.is_lost(port) {
            // There is nothing to flush any more, unless something was answered that is gone.
            let is_error = !is_flush || window.is_dirty();
            return self.part_ended(job, if is_error { Err(IoError::Lost) } else { Ok(()) });
        }
        let extent = match inside.is_empty() {
            true => inside,
            false => Extent::new(inside.start.0 - window.extent.start.0, inside.blocks.0),
        };
        let buffer = match request.operation.has_data() {
            true => {
                let first = inside.start.0 - request.extent.start.0;
                request.buffer.part(first, inside.blocks.0)
            }
            false => request.buffer,
        };
        let part = Part { job, port, covers };
        let tag = Tag(u64::from(keep(&mut self.parts, &mut self.free_parts, part)));
        ctx.issue(Issue {
            port,
            operation: request.operation,
            extent,
            buffer,
            cause: request.cause,
            tag,
        });
    }

    /// Takes the result of a part into account; the first error counts.
    fn part_ended(&mut self, job: u32, result: Result<(), IoError>) {
        let job = self.jobs[job as usize].as_mut().expect("a job under way");
        job.parts -= 1;
        job.result = job.result.and(result);
    }

    /// Answers a request whose parts have all ended.
    fn answer_if_done(&mut self, index: u32, ctx: &mut Context<'_>) {
        let slot = &mut self.jobs[index as usize];
        let job = slot.expect("a job under way");
        if job.parts == 0 {
            *slot = None;
            self.free_jobs.push(index);
            ctx.finish(job.request, job.result);
        }
    }

    /// What has become of a part, with what that means for the flushes of its window.
    fn judge(&mut self, part: Part, result: Result<(), IoError>) -> Result<(), IoError> {
        let job = self.jobs[part.job as usize].as_ref().expect("a job");
        let window = &mut self.windows[usize::from(part.port.0)];
        match (job.operation, result) {
            (Operation::Write { .. } | Operation::Zero { .. }, Ok(())) => {
                window.written += u64::from(!job.operation.is_durable());
                result
            }
            (Operation::Flush, Err(IoError::Lost)) if window.flushed >= part.covers => Ok(()),
            (Operation::Flush, Err(error)) => {
                window.failed.get_or_insert(error);
                result
            }
            (Operation::Flush, Ok(())) => match window.failed {
                Some(error) => Err(error),
                None => {
                    window.flushed = window.flushed.max(part.covers);
                    result
                }
            },
            _ => result,
        }
    }
}

/// Puts an entry into a free place of a table.
fn keep<T>(table: &mut Vec<Option<T>>, free: &mut Vec<u32>, entry: T) -> u32 {
    match free.pop() {
        Some(index) => {
            table[index as usize] = Some(entry);
            index
        }
        None => {
            table.push(Some(entry));
            table.len() as u32 - 1
        }
    }
}

/// The bands of all nodes, if all have some.
fn joined_bands(below: &[&Geometry]) -> Option<BandTable> {
    let mut lengths = Vec::new();
    for geometry in below {
        let bands = geometry.bands.as_deref()?;
        // A layer may keep the end of the last bands for itself.
        let offered = Extent::new(0, geometry.blocks.0.min(bands.blocks().0));
        if offered.blocks != geometry.blocks {
            return None;
        }
        let bands = bands.part(offered);
        lengths.extend((0..bands.bands()).map(|band| bands.extent_of(BandId(band)).blocks));
    }
    Some(BandTable::new(lengths))
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

impl Layer for Span {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        let is_everything = request.extent.is_empty();
        let touches = |window: &Window| is_everything || window.extent.overlaps(request.extent);
        let first = self
            .windows
            .partition_point(|it| !is_everything && it.extent.end() <= request.extent.start);
        let touched = self.windows[first..].iter().take_while(|it| touches(it));
        let parts = touched.count();
        let job = keep(
            &mut self.jobs,
            &mut self.free_jobs,
            Job {
                request: request.id,
                operation: request.operation,
                parts: parts as u32,
                result: Ok(()),
            },
        );
        for index in first..first + parts {
            self.issue_part(job, index, &request, ctx);
        }
        self.answer_if_done(job, ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let index = completion.tag.0 as u32;
        let part = self.parts[index as usize].take().expect("a part under way");
        self.free_parts.push(index);
        let result = self.judge(part, completion.result);
        self.part_ended(part.job, result);
        self.answer_if_done(part.job, ctx);
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.opened(match self.are_all_lost(ctx) {
            true => Err(OpenError::Io(IoError::Lost)),
            false => Ok(()),
        });
    }

    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        if self.are_all_lost(ctx) {
            ctx.lose();
        }
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn replaced(&mut self, port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        // The new disk holds nothing, and the layer that takes it knows that.
        let window = &mut self.windows[usize::from(port.0)];
        (window.flushed, window.failed) = (window.written, None);
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        facts.push(("windows", self.windows.len() as u64));
    }
}

impl Span {
    fn are_all_lost(&self, ctx: &Context<'_>) -> bool {
        (0..self.windows.len()).all(|index| ctx.is_lost(Port(index as u8)))
    }
}
