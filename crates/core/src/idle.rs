//! Idle time: since when nothing has been asked, and whether that is long enough to do something else.

use crate::layer::Context;
use crate::saved::SavedValue;
use crate::timers::Timers;
use crate::units::{Duration, Instant};

/// Watches for idle time of a layer, or of a part of it: the layer tells it of every request, and whoever
/// makes use of idle time is told by the layer.
///
/// It has one of the [timers](Timers) of the layer to itself, so a layer may have several. Idle time begins
/// behind an answer, never before the first request.
#[derive(Debug, SavedValue)]
pub struct IdleClock {
    timer: usize,
    /// How long nothing must have been asked.
    after: Duration,
    /// Requests that are being served.
    active: u32,
    /// Since when there has been none.
    since: Instant,
    is_idle: bool,
}

impl IdleClock {
    /// A clock with this timer, for idle time that begins when nothing has been asked for so long.
    pub fn new(timer: usize, after: Duration) -> IdleClock {
        IdleClock { timer, after, active: 0, since: Instant::ZERO, is_idle: false }
    }

    /// A request has arrived; true when that ends idle time.
    pub fn request_arrived(&mut self) -> bool {
        self.active += 1;
        core::mem::replace(&mut self.is_idle, false)
    }

    /// A request has been answered. Asks to be woken when idle time would begin if none came until then.
    pub fn request_answered<const N: usize>(
        &mut self,
        timers: &mut Timers<N>,
        ctx: &mut Context<'_>,
    ) {
        if let Some(begin) = self.answered(ctx.now()) {
            timers.set(self.timer, begin, ctx);
        }
    }

    /// True when idle time begins now. To be asked in [`Layer::wake`](crate::layer::Layer::wake).
    pub fn begins<const N: usize>(&mut self, timers: &mut Timers<N>, ctx: &Context<'_>) -> bool {
        timers.has_ended(self.timer, ctx) && self.look(ctx.now())
    }

    /// True while it is idle time.
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Since when no request has been served, while none is.
    pub fn quiet_since(&self) -> Option<Instant> {
        (self.active == 0).then_some(self.since)
    }

    fn answered(&mut self, now: Instant) -> Option<Instant> {
        self.active -= 1;
        self.since = now;
        (self.active == 0).then(|| now + self.after)
    }

    fn look(&mut self, now: Instant) -> bool {
        self.is_idle = self.quiet_since().is_some_and(|since| since + self.after <= now);
        self.is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{Buffers, ContentKind};
    use crate::disk::{DiskCompletion, DiskOp, Geometry, Media};
    use crate::extent::Extent;
    use crate::layer::{Issue, Layer, Port};
    use crate::operation::{Completion, Operation, Request, Tag};
    use crate::stack::{Arrival, DiskId, Stack, StackBuilder};
    use crate::units::{BlockCount, Lba};
    use alloc::boxed::Box;
    use alloc::rc::Rc;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn idle_time_begins_long_enough_after_the_last_of_all_answers() {
        let mut clock = IdleClock::new(0, Duration::from_ms(250));
        clock.request_arrived();
        clock.request_arrived();
        assert_eq!(clock.answered(at(10)), None, "one is being served");
        assert_eq!(clock.quiet_since(), None);
        assert_eq!(clock.answered(at(20)), Some(at(270)));
        assert_eq!(clock.quiet_since(), Some(at(20)));
        assert!(!clock.look(at(269)));
        assert!(clock.look(at(270)) && clock.is_idle());
        assert!(clock.request_arrived(), "it ends idle time");
        assert!(!clock.is_idle() && !clock.look(at(900)), "one is being served");
    }

    /// Passes reads on. Those of block 0 count for one clock, the others for another.
    struct TwoClocks {
        timers: Timers<2>,
        clocks: [IdleClock; 2],
        in_flight: Vec<Request>,
        /// Which clock has told of idle time, and when.
        told: Rc<RefCell<Vec<(usize, Instant)>>>,
    }

    fn clock_of(block: Lba) -> usize {
        usize::from(block.0 > 0)
    }

    impl Layer for TwoClocks {
        fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
            self.clocks[clock_of(request.extent.start)].request_arrived();
            ctx.issue(Issue {
                port: Port(0),
                operation: request.operation,
                extent: request.extent,
                buffer: request.buffer,
                cause: request.cause,
                tag: Tag(request.extent.start.0),
            });
            self.in_flight.push(request);
        }

        fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
            let at = self.in_flight.iter().position(|it| it.extent.start.0 == completion.tag.0);
            let request = self.in_flight.remove(at.expect("a request"));
            let clock = &mut self.clocks[clock_of(request.extent.start)];
            clock.request_answered(&mut self.timers, ctx);
            ctx.finish(request.id, completion.result);
        }

        fn wake(&mut self, ctx: &mut Context<'_>) {
            for (index, clock) in self.clocks.iter_mut().enumerate() {
                if clock.begins(&mut self.timers, ctx) {
                    self.told.borrow_mut().push((index, ctx.now()));
                }
            }
            self.timers.arm(ctx);
        }
    }

    /// The stack, and the reads that its disk has.
    struct Bench(Stack, Buffers, Vec<DiskOp>);

    impl Bench {
        fn read(&mut self, block: u64, now: Instant) {
            let extent = Extent::new(block, 1);
            let buffer = self.1.allocate(1);
            let arrival = Arrival { tag: Tag(block), operation: Operation::Read, extent, buffer };
            self.0.handle_request(now, arrival, &mut self.1);
            self.2.extend(self.0.poll_disk_op().map(|(_, op)| op));
        }

        fn answer(&mut self, block: u64, now: Instant) {
            let at = self.2.iter().position(|op| op.extent.start.0 == block).expect("a read");
            let DiskOp { id, .. } = self.2.remove(at);
            let completion = DiskCompletion { id, result: Ok(()) };
            self.0.handle_disk_completion(now, DiskId(0), completion, &mut self.1);
        }

        fn wake(&mut self, now: Instant) {
            assert_eq!(self.0.next_wakeup(), Some(now));
            self.0.handle_wakeups(now, &mut self.1);
        }
    }

    #[test]
    fn two_clocks_of_a_layer_tell_of_idle_time_each_for_itself() {
        let told = Rc::new(RefCell::new(Vec::new()));
        let geometry = Geometry::plain(BlockCount(8), Media::Conventional);
        let mut builder = StackBuilder::new(0);
        let disk = builder.disk(geometry.clone());
        let layer = TwoClocks {
            timers: Timers::default(),
            clocks: [(0, 100), (1, 250)]
                .map(|(timer, ms)| IdleClock::new(timer, Duration::from_ms(ms))),
            in_flight: Vec::new(),
            told: Rc::clone(&told),
        };
        let top = builder.layer(Box::new(layer), geometry, &[disk]);
        let buffers = Buffers::new(ContentKind::Counted);
        let mut bench = Bench(builder.build(top), buffers, Vec::new());
        bench.read(0, at(0));
        bench.read(5, at(0));
        bench.answer(0, at(10));
        bench.answer(5, at(20));
        bench.wake(at(110));
        bench.read(0, at(200));
        bench.wake(at(270));
        bench.answer(0, at(300));
        bench.wake(at(400));
        assert_eq!(*told.borrow(), [(0, at(110)), (1, at(270)), (0, at(400))]);
        assert_eq!(bench.0.next_wakeup(), None);
    }
}
