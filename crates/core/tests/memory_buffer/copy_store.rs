//! The smallest store of copies: it keeps whole blocks in buffers, the oldest leave first, and it asks
//! no disk; and the smallest translation that tells it what goes home.

use imbrex_core::buffer::BufferSlice;
use imbrex_core::disk::{CopyStore, Geometry, Media};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{
    Cause, Completion, CopyOperation, Operation, Request, RequestId, Tag,
};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::rc::Rc;

/// What the store was asked, in words.
pub type Asked = Rc<RefCell<Vec<(CopyOperation, u64)>>>;

/// A store of at most so many copies.
pub struct ToyStore {
    parts: u64,
    copies_max: usize,
    /// Blocks with their copies, the oldest first; a reserved one is empty.
    copies: Vec<(u64, Option<BufferSlice>)>,
    asked: Asked,
    /// Every so many operations it has lost everything.
    forgets_every: u64,
    operations: u64,
}

impl ToyStore {
    /// An empty store, what it says of itself, and what it will have been asked.
    pub fn new(
        blocks: u64,
        parts: u64,
        copies_max: usize,
        forgets_every: u64,
    ) -> (ToyStore, Geometry, Asked) {
        let asked = Asked::default();
        let store = ToyStore {
            parts,
            copies_max,
            copies: Vec::new(),
            asked: Rc::clone(&asked),
            forgets_every,
            operations: 0,
        };
        let geometry = Geometry {
            copies: Some(CopyStore { block: BlockCount(parts), wants_rewrite_reads: false }),
            ..Geometry::plain(BlockCount(blocks), Media::SolidState)
        };
        (store, geometry, asked)
    }

    fn drop_copy(&mut self, block: u64, ctx: &mut Context<'_>) {
        if let Some(at) = self.copies.iter().position(|(it, _)| *it == block)
            && let (_, Some(buffer)) = self.copies.remove(at)
        {
            ctx.release(buffer);
        }
    }

    fn reserve(&mut self, block: u64, ctx: &mut Context<'_>) {
        if self.copies.len() == self.copies_max {
            let (oldest, _) = self.copies[0];
            self.drop_copy(oldest, ctx);
        }
        self.copies.push((block, None));
    }

    fn find(&self, block: u64, request: &Request, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let copy = self.copies.iter().find(|(it, _)| *it == block);
        let Some((_, Some(buffer))) = copy else {
            return Err(IoError::NoCopy);
        };
        let first = request.extent.start.0 - block * self.parts;
        let part = buffer.part(first, request.extent.blocks.0);
        ctx.copy(part, request.buffer);
        Ok(())
    }

    fn store(&mut self, block: u64, request: &Request, ctx: &mut Context<'_>) {
        let kept = ctx.allocate(request.extent.blocks);
        ctx.copy(request.buffer, kept);
        match self.copies.iter_mut().find(|(it, _)| *it == block) {
            Some((_, copy @ None)) => *copy = Some(kept),
            Some((_, Some(_))) => ctx.release(kept),
            None => {
                self.reserve(block, ctx);
                self.copies.last_mut().expect("reserved").1 = Some(kept);
            }
        }
    }
}

impl Layer for ToyStore {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let Operation::Copy(what) = request.operation else {
            panic!("a store of copies was asked for {:?}", request.operation);
        };
        let block = request.extent.start.0 / self.parts;
        let end = request.extent.end().0.div_ceil(self.parts);
        assert_eq!(end, block + 1, "an operation lies in one block");
        self.asked.borrow_mut().push((what, block));
        self.operations += 1;
        if self.forgets_every > 0 && self.operations.is_multiple_of(self.forgets_every) {
            while let Some((block, _)) = self.copies.first().copied() {
                self.drop_copy(block, ctx);
            }
        }
        let is_there = self.copies.iter().any(|(it, _)| *it == block);
        let result = match what {
            CopyOperation::Find | CopyOperation::Peek => self.find(block, &request, ctx),
            CopyOperation::FindOrReserve => {
                if !is_there {
                    self.reserve(block, ctx);
                }
                self.find(block, &request, ctx)
            }
            CopyOperation::Store => {
                self.store(block, &request, ctx);
                Ok(())
            }
            CopyOperation::Overwritten | CopyOperation::Destaged | CopyOperation::Drop => {
                self.drop_copy(block, ctx);
                Ok(())
            }
        };
        ctx.finish(request.id, result);
    }

    fn complete(&mut self, _: Completion, _: &mut Context<'_>) {
        unreachable!("a store without a disk asks nobody");
    }
}

/// Passes everything to a disk on port 1, and tells the store on port 0 of each block that is destaged.
pub struct ToyTranslation {
    parts: u64,
    /// Requests under way, each with the operations that have not ended.
    requests: Vec<(RequestId, u64, Result<(), IoError>)>,
    /// Batches whose last write has come.
    pub batches: Rc<RefCell<Vec<Vec<Extent>>>>,
    batch: Vec<Extent>,
}

impl ToyTranslation {
    pub fn new(parts: u64) -> ToyTranslation {
        ToyTranslation { parts, requests: Vec::new(), batches: Rc::default(), batch: Vec::new() }
    }

    fn tell(&mut self, request: &Request, tag: u64, ctx: &mut Context<'_>) {
        self.batch.push(request.extent);
        if !request.has_more {
            self.batches.borrow_mut().push(std::mem::take(&mut self.batch));
        }
        let mut at = 0;
        while at < request.extent.blocks.0 {
            let blocks = self.parts.min(request.extent.blocks.0 - at);
            self.requests[tag as usize].1 += 1;
            ctx.issue(Issue {
                port: Port(0),
                operation: Operation::Copy(CopyOperation::Destaged),
                extent: Extent::new(request.extent.start.0 + at, blocks),
                buffer: request.buffer.part(at, blocks),
                cause: Cause::Destage,
                tag: Tag(tag),
            });
            at += blocks;
        }
    }
}

impl Layer for ToyTranslation {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let tag = self.requests.len() as u64;
        self.requests.push((request.id, 1, Ok(())));
        if request.cause == Cause::Destage && matches!(request.operation, Operation::Write { .. }) {
            self.tell(&request, tag, ctx);
        }
        ctx.issue(Issue {
            port: Port(1),
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag(tag),
        });
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let (id, left, result) = &mut self.requests[completion.tag.0 as usize];
        *left -= 1;
        *result = result.and(completion.result);
        if *left == 0 {
            ctx.finish(*id, *result);
        }
    }
}
