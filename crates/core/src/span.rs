//! Nodes one after another as one node, so that several stand under one top.

use crate::command::{CommandId, OnReplacement, Without};
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::joined::{JoinError, Part, Parts, joined};
use crate::layer::{Context, Layer, Port};
use crate::lifecycle::{OpenError, Start};
use crate::map::{BandId, BandTable};
use crate::operation::{Completion, Operation, Request};
use crate::saved::Saved;
use crate::units::BlockCount;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Nodes joined one after another: each is a window of the span.
///
/// A request that crosses a border is split and answered once. A flush that bears blocks goes to the
/// windows that have them, another one to all. A lost node costs its window only: reads and writes
/// there fail, and so does a flush of everything where the window held writes that no flush had
/// covered. When a flush of a window has failed, all later ones of it do.
#[derive(Debug, Saved)]
pub struct Span {
    /// The blocks that each node holds, in the addresses of the span.
    #[saved(keep)]
    windows: Vec<Extent>,
    parts: Parts,
}

impl Span {
    /// The nodes `below` one after another, and what they tell the node above together.
    ///
    /// # Errors
    /// When there is none, there are too many, or one has zones that must be written in sequence.
    pub fn new(below: &[&Geometry]) -> Result<(Span, Geometry), JoinError> {
        let blocks = below.iter().map(|it| it.blocks.0).sum();
        let geometry = Geometry {
            bands: joined_bands(below).map(Arc::new),
            ..joined(below, BlockCount(blocks))?
        };
        let mut windows = Vec::with_capacity(below.len());
        let mut end = 0;
        for geometry in below {
            windows.push(Extent::new(end, geometry.blocks.0));
            end += geometry.blocks.0;
        }
        let parts = Parts::new(below.iter().map(|it| it.blocks));
        Ok((Span { windows, parts }, geometry))
    }

    /// The windows, in the order of the ports, in the addresses of the span.
    pub fn windows(&self) -> impl Iterator<Item = Extent> + '_ {
        self.windows.iter().copied()
    }

    /// The part of a request that a window has.
    fn part(&self, job: u32, index: usize, request: &Request) -> Part {
        let window = self.windows[index];
        let is_everything = request.operation == Operation::Flush && request.extent.is_empty();
        let inside = match is_everything {
            true => Extent::EMPTY,
            false => (request.extent.intersection(window)).expect("a part inside of its window"),
        };
        let extent = match inside.is_empty() {
            true => inside,
            false => Extent::new(inside.start.0 - window.start.0, inside.blocks.0),
        };
        let buffer = match request.operation.has_data() {
            true => {
                let first = inside.start.0 - request.extent.start.0;
                request.buffer.part(first, inside.blocks.0)
            }
            false => request.buffer,
        };
        Part { job, port: Port(index as u8), extent, buffer }
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

impl Layer for Span {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        let is_everything = request.extent.is_empty();
        let touches = |window: &Extent| is_everything || window.overlaps(request.extent);
        let first =
            self.windows.partition_point(|it| !is_everything && it.end() <= request.extent.start);
        let touched = self.windows[first..].iter().take_while(|it| touches(it));
        let parts = touched.count();
        let job = self.parts.begin(request, parts);
        for index in first..first + parts {
            let part = self.part(job, index, &request);
            self.parts.issue(part, ctx);
        }
        self.parts.all_are_issued(job, ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        self.parts.end(completion.tag, completion.result, ctx);
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
        self.parts.replaced(port);
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        match (0..self.windows.len()).all(|index| is_lost(Port(index as u8))) {
            true => Without::Lost,
            false => Without::GoesOn("requests for this part fail, and the other parts are served"),
        }
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        facts.push(("windows", self.windows.len() as u64));
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}

impl Span {
    fn are_all_lost(&self, ctx: &Context<'_>) -> bool {
        (0..self.windows.len()).all(|index| ctx.is_lost(Port(index as u8)))
    }
}
