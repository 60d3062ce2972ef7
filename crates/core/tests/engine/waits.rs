//! The engine never waits for something that a wait before has told already.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::{Clock, Engine};
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::{BlockCount, Instant};
use std::cell::Cell;
use std::rc::Rc;

/// Operations of a disk that works on threads: it carries out what it has during the next wait,
/// which ends then, and tells of it once.
#[derive(Clone, Default)]
struct OnThreads {
    submitted: Rc<Cell<Option<DiskOp>>>,
    done: Rc<Cell<Option<DiskOp>>>,
}

impl Disk for OnThreads {
    fn geometry(&self) -> &Geometry {
        unreachable!("the stack has it")
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        self.submitted.set(Some(op));
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        let DiskOp { id, .. } = self.done.take()?;
        Some(DiskCompletion { id, result: Ok(()) })
    }

    fn next_event(&self) -> Option<Instant> {
        None
    }
}

/// A clock that waits for those threads.
struct WaitingClock(OnThreads);

impl Clock for WaitingClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        let done = self.0.submitted.take();
        assert!(
            done.is_some() || until.is_some(),
            "a wait for what has happened already would never end"
        );
        if done.is_some() {
            self.0.done.set(done);
        }
        Instant::ZERO
    }
}

/// A layer that is up while work of its own is in flight.
struct BusyOnceOpen;

impl Layer for BusyOnceOpen {
    fn submit(&mut self, _request: Request, _ctx: &mut Context<'_>) {}

    fn complete(&mut self, _completion: Completion, _ctx: &mut Context<'_>) {}

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        ctx.issue(Issue {
            port: Port(0),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
            cause: Cause::Metadata,
            tag: Tag(0),
        });
        ctx.opened(Ok(()));
    }
}

#[test]
fn closing_does_not_wait_for_what_has_happened() {
    let threads = OnThreads::default();
    let geometry = Geometry::plain(BlockCount(8), Media::Conventional);
    let mut builder = StackBuilder::new(0);
    let disk = builder.disk(geometry.clone());
    let top = builder.layer(Box::new(BusyOnceOpen), geometry, &[disk]);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(threads.clone())],
        buffers: Buffers::new(ContentKind::Counted),
        in_flight_max: 1,
    };
    let mut clock = WaitingClock(threads);
    let start = Start::Format(Uuid([0; 16]));
    engine.open(&mut clock, start).expect("it opens");
    assert!(!engine.stack.is_quiet(), "its flush is in flight");
    engine.close(&mut clock).expect("it closes");
    assert!(engine.stack.is_quiet());
}
