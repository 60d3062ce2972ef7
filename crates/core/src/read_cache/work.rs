//! Operations on the flash: reads of a copy go together, a write goes alone, each in its turn.

use crate::map::Slab;
use crate::operation::Request;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// What an operation does with a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Kind {
    Read,
    Write,
}

/// An operation of an entry.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Operation {
    entry: u32,
    kind: Kind,
    request: Request,
}

/// What is under way on the flash, and what waits. Both are as long as the queue is deep.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Work {
    under_way: Slab<Option<Operation>>,
    waiting: Vec<Operation>,
}

impl Work {
    /// True when an operation may begin at once; it waits otherwise.
    pub fn enter(&mut self, entry: u32, kind: Kind, request: Request) -> bool {
        let waits = self.waiting.iter().any(|it| it.entry == entry);
        let may_begin = !waits && self.goes_with(entry, kind);
        if !may_begin {
            self.waiting.push(Operation { entry, kind, request });
        }
        may_begin
    }

    fn goes_with(&self, entry: u32, kind: Kind) -> bool {
        let mut others = self.under_way.iter().flatten();
        others.all(|it| it.entry != entry || kind == Kind::Read && it.kind == Kind::Read)
    }

    /// An operation begins; its number.
    pub fn begin(&mut self, entry: u32, kind: Kind, request: Request) -> u32 {
        self.under_way.add(Some(Operation { entry, kind, request }))
    }

    /// An operation has ended.
    pub fn end(&mut self, number: u32) -> (u32, Kind, Request) {
        let operation = self.under_way[number].take();
        let operation = operation.expect("an operation that is under way");
        self.under_way.remove(number);
        (operation.entry, operation.kind, operation.request)
    }

    /// The next operation of an entry that waits and may begin now.
    pub fn next(&mut self, entry: u32) -> Option<(Kind, Request)> {
        let at = self.waiting.iter().position(|it| it.entry == entry)?;
        let kind = self.waiting[at].kind;
        if !self.goes_with(entry, kind) {
            return None;
        }
        let operation = self.waiting.remove(at);
        Some((kind, operation.request))
    }

    /// True when nothing of an entry is under way or waits.
    pub fn is_idle(&self, entry: u32) -> bool {
        let under_way = self.under_way.iter().flatten();
        let mut all = under_way.chain(&self.waiting);
        all.all(|it| it.entry != entry)
    }
}
