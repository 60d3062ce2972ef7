//! Wall time, and waiting for whichever comes first: a deadline or something outside.

use imbrex_core::engine::Clock;
use imbrex_core::units::{Duration, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::io;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;
use std::{thread, time};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 128;
const NS_PER_MS: u64 = 1_000_000;
/// The last part of a wait is spent awake, because waking up takes about as long.
const SPIN: Duration = Duration(50_000);
/// So is its first part: a client that waits for each answer sends its next request within this.
const AWAKE: Duration = Duration(50_000);
/// Waits that are slept through from the start after one for which nothing came within [`AWAKE`].
const WAITS_ASLEEP: u32 = 16;

/// Tells the time since the server started, from the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct WallTime {
    start: time::Instant,
    /// Time passes only as [`ahead`](Self::ahead) says, however busy the machine is.
    #[cfg(test)]
    stands_at: Option<Instant>,
}

impl WallTime {
    /// Time that starts now.
    pub fn start() -> WallTime {
        WallTime {
            start: time::Instant::now(),
            #[cfg(test)]
            stands_at: None,
        }
    }

    /// Time that a test moves.
    #[cfg(test)]
    pub(crate) fn standing() -> WallTime {
        WallTime { stands_at: Some(Instant::ZERO), ..WallTime::start() }
    }

    /// The time of a start that was `by` earlier: a test need not wait.
    #[cfg(test)]
    pub(crate) fn ahead(self, by: Duration) -> WallTime {
        WallTime {
            start: self.start - time::Duration::from_nanos(by.0),
            stands_at: self.stands_at.map(|at| at + by),
        }
    }

    /// The time since the start.
    #[inline]
    pub fn now(&self) -> Instant {
        #[cfg(test)]
        if let Some(at) = self.stands_at {
            return at;
        }
        Instant(self.start.elapsed().as_nanos() as u64)
    }
}

/// Ends the wait of a server's loop from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// Ends the present wait, or the next one.
    pub fn wake(&self) {
        // The counter cannot be full: nobody wakes 2^64 times. Nothing else can fail.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }
}

/// The kernel's list of what to wait for. Every descriptor is watched edge-triggered, so that one
/// that is ready but must wait its turn costs nothing.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: RefCell<Vec<Event>>,
    turn: Cell<u64>,
    wait_began: Cell<Instant>,
    /// What came since the last wait.
    came: Cell<Came>,
}

/// What clients have sent between two waits.
#[derive(Clone, Copy, Default)]
struct Came {
    /// Requests, those whose payload has just become whole included.
    requests: u32,
    /// Parts of payloads whose rest is yet to come.
    parts: u32,
}

impl Came {
    /// True when one client has sent one thing, and something more of it is to be expected.
    fn is_single(self) -> bool {
        self.requests <= 1 && self.parts <= 1 && self.requests + self.parts > 0
    }
}

impl Poller {
    pub fn new() -> rustix::io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: RefCell::new(Vec::with_capacity(EVENTS_MAX)),
            turn: Cell::new(0),
            wait_began: Cell::new(Instant::ZERO),
            came: Cell::default(),
        })
    }

    /// Watches for input.
    pub fn add(&self, source: impl AsFd, token: u64) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, source, EventData::new_u64(token), input())
    }

    /// Watches for input and, with `output`, for room to write.
    pub fn modify(&self, source: impl AsFd, token: u64, output: bool) -> rustix::io::Result<()> {
        let flags = if output { input() | EventFlags::OUT } else { input() };
        epoll::modify(&self.epoll, source, EventData::new_u64(token), flags)
    }

    /// A waker whose events carry `token`.
    pub fn waker(&self, token: u64) -> rustix::io::Result<Waker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        self.add(&event, token)?;
        Ok(Waker { event: Arc::new(event) })
    }

    /// Counts the waits. Work can be limited to a share per wait, and whoever takes the events
    /// knows whether there was a wait since.
    pub fn turn(&self) -> u64 {
        self.turn.get()
    }

    /// When the last wait began.
    pub fn wait_began(&self) -> Instant {
        self.wait_began.get()
    }

    /// Counts a request. How many come between two waits decides how the next wait begins.
    #[inline]
    pub fn count_request(&self) {
        let came = self.came.get();
        self.came.set(Came { requests: came.requests + 1, ..came });
    }

    /// Counts a part of a payload that is not the last one.
    #[inline]
    pub fn count_part(&self) {
        let came = self.came.get();
        self.came.set(Came { parts: came.parts + 1, ..came });
    }

    /// Calls `event` for each event of the waits since the last call, once.
    pub fn take_events(&self, mut event: impl FnMut(u64, EventFlags)) {
        for entry in self.events.borrow_mut().drain(..) {
            event({ entry.data }.u64(), entry.flags);
        }
    }

    /// Waits for an event, `timeout` at most. True when there is a new one; those of earlier waits
    /// that nobody has taken are kept beside it and do not end this wait.
    fn wait(&self, timeout: Option<Duration>) -> bool {
        self.turn.set(self.turn.get() + 1);
        // An epoll instance waits for whole milliseconds. A longer wait ends early and is asked for again;
        // the rest of it is `ppoll`'s, which takes nanoseconds: a paced completion must not be late.
        let timeout = timeout.map(|span| {
            let rest_ns = span.0 % NS_PER_MS;
            if span.0 == rest_ns && rest_ns > 0 {
                let mut instance = [PollFd::new(&self.epoll, PollFlags::IN)];
                match poll(&mut instance, Some(&timespec(rest_ns))) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => panic!("ppoll failed: {errno}"),
                }
            }
            timespec(span.0 - rest_ns)
        });
        let mut events = self.events.borrow_mut();
        merge_by_source(&mut events);
        events.reserve(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(new) => new > 0,
            Err(Errno::INTR) => false,
            Err(errno) => panic!("epoll_wait failed: {errno}"),
        }
    }
}

/// Makes one event of all that a source has told. Events that nobody has taken must not be lost,
/// because the kernel tells an edge once, and must not become more and more: while the layers of a
/// server come up or go down nobody takes any.
fn merge_by_source(events: &mut Vec<Event>) {
    let token = |event: &Event| { event.data }.u64();
    events.sort_unstable_by_key(token);
    events.dedup_by(|later, first| {
        let is_same = token(later) == token(first);
        if is_same {
            first.flags = { first.flags } | { later.flags };
        }
        is_same
    });
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

fn input() -> EventFlags {
    EventFlags::IN | EventFlags::RDHUP | EventFlags::ET
}

/// Whether a wait begins awake. It does behind a single request or a part of one, as long as what follows comes in
/// time: falling asleep and being woken takes client and server longer than a small request, and a socket holds but
/// a part of a large one. Where it does not come, the thread tries again now and then, so that a slow client costs a fraction of a
/// wait. Behind several requests the thread sleeps: it takes together what comes meanwhile, with fewer calls.
struct Wakefulness {
    /// Waits behind single things that are slept through before one begins awake; `None` with one processor, where the
    /// client could not run meanwhile.
    asleep: Option<u32>,
}

impl Wakefulness {
    /// Of a thread on a machine with so many processors.
    fn new(processors: usize) -> Wakefulness {
        Wakefulness { asleep: (processors > 1).then_some(0) }
    }

    /// True when the wait behind this begins awake.
    fn begins_awake(&mut self, came: Came) -> bool {
        match &mut self.asleep {
            _ if !came.is_single() => false,
            None => false,
            Some(0) => true,
            Some(waits) => {
                *waits -= 1;
                false
            }
        }
    }

    /// Nothing came while the thread was awake.
    fn was_in_vain(&mut self) {
        self.asleep = Some(WAITS_ASLEEP);
    }
}

/// The clock of a server.
pub struct WallClock {
    time: WallTime,
    poller: Rc<Poller>,
    wakefulness: Wakefulness,
}

/// What events of a waker carry when nobody listens to anything else.
const ALONE: u64 = 0;

impl WallClock {
    /// A clock without a server, and what ends its waits.
    ///
    /// # Errors
    /// When the system refuses an epoll instance.
    pub fn alone() -> io::Result<(WallClock, Waker)> {
        let poller = Poller::new()?;
        let waker = poller.waker(ALONE)?;
        Ok((WallClock::new(WallTime::start(), Rc::new(poller)), waker))
    }

    pub(crate) fn new(time: WallTime, poller: Rc<Poller>) -> WallClock {
        // The default slack would let every paced completion be up to 50 µs late. A kernel that
        // refuses leaves us with that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        WallClock { time, poller, wakefulness: Wakefulness::new(processors) }
    }

    /// Waits awake for a moment; the time if something has happened or it is `until`.
    fn wait_awake(&mut self, until: Option<Instant>) -> Option<Instant> {
        let end = self.poller.wait_began() + AWAKE;
        loop {
            let happened = self.poller.wait(Some(Duration::ZERO));
            let now = self.time.now();
            if happened || until.is_some_and(|until| until <= now) {
                return Some(now);
            }
            if now >= end {
                self.wakefulness.was_in_vain();
                return None;
            }
            // Somebody may want this processor for what we wait for.
            thread::yield_now();
        }
    }
}

impl Clock for WallClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        self.poller.wait_began.set(self.time.now());
        let came = self.poller.came.take();
        if self.wakefulness.begins_awake(came)
            && let Some(now) = self.wait_awake(until)
        {
            return now;
        }
        loop {
            let timeout = until.map(|until| {
                let left = until.since(self.time.now());
                if left > SPIN { left - SPIN } else { Duration::ZERO }
            });
            let happened = self.poller.wait(timeout);
            let now = self.time.now();
            if happened || until.is_some_and(|until| until <= now) {
                return now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_deadline_or_when_woken() {
        let poller = Rc::new(Poller::new().expect("epoll"));
        let waker = poller.waker(9).expect("eventfd");
        let time = WallTime::start();
        let mut clock = WallClock::new(time, poller.clone());
        let until = time.now() + Duration::from_us(3_300);
        let woken = clock.wait(Some(until));
        assert!(woken >= until, "{woken:?} is before {until:?}");
        waker.wake();
        clock.wait(None);
        let mut tokens = Vec::new();
        poller.take_events(|token, _| tokens.push(token));
        assert_eq!(tokens, [9]);
        let until = time.now() + Duration::from_ms(1);
        assert!(clock.wait(Some(until)) >= until, "an edge is told once");
    }

    #[test]
    fn after_a_wait_awake_for_nothing_the_next_ones_are_slept_through() {
        let came = |requests, parts| Came { requests, parts };
        let mut wakefulness = Wakefulness::new(2);
        for _ in 0..100 {
            for single in [came(1, 0), came(0, 1), came(1, 1)] {
                assert!(wakefulness.begins_awake(single), "it pays");
            }
            for other in [came(0, 0), came(2, 0), came(0, 2), came(1, 2)] {
                assert!(!wakefulness.begins_awake(other));
            }
        }
        wakefulness.was_in_vain();
        let asleep = (0..100).take_while(|_| !wakefulness.begins_awake(came(1, 0))).count();
        assert_eq!(asleep, WAITS_ASLEEP as usize);
        let mut alone = Wakefulness::new(1);
        assert!((0..100).all(|_| !alone.begins_awake(came(1, 0))), "nobody else could run");
    }

    /// While layers come up nobody takes events, and a wait that they end would never wait.
    #[test]
    fn events_that_nobody_takes_end_one_wait_and_are_kept_once() {
        let poller = Rc::new(Poller::new().expect("epoll"));
        let waker = poller.waker(9).expect("eventfd");
        let time = WallTime::start();
        let mut clock = WallClock::new(time, poller.clone());
        for _ in 0..3 * EVENTS_MAX {
            waker.wake();
            clock.wait(None);
        }
        let until = time.now() + Duration::from_ms(3);
        assert!(clock.wait(Some(until)) >= until, "an old event ended a wait");
        assert!(poller.events.borrow().len() <= 1, "one source, one event");
        let mut tokens = Vec::new();
        poller.take_events(|token, _| tokens.push(token));
        assert_eq!(tokens, [9]);
    }

    /// Whole milliseconds would make every paced completion late by half of one in the mean.
    #[test]
    fn a_wait_is_not_rounded_up_to_milliseconds() {
        let poller = Rc::new(Poller::new().expect("epoll"));
        let time = WallTime::start();
        let mut clock = WallClock::new(time, poller);
        // The least of many, because a busy machine may be late each time but one.
        let late = (0..50).map(|_| {
            let until = time.now() + Duration::from_us(1_100);
            clock.wait(Some(until)).since(until).0
        });
        let least_ns = late.min().expect("waits");
        assert!(least_ns < 500_000, "{least_ns} ns late");
    }
}
