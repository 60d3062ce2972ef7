//! Cleaning: whether a band rewrite may begin or go on, and which requests are served meanwhile.
//!
//! **In idle time**, when no request has been served for long enough, bands are rewritten one at a
//! time until the log holds nothing any more. A request that arrives stops the rewrite at its next
//! chunk, and the next idle period goes on there (Idler, IEEE TC 2020): the merged data waits in the
//! memory of the drive, and what is written to the band meanwhile is a log entry newer than the
//! gather. Where a request turns out to wait for the rewrite itself, it goes on like one that makes
//! room.
//!
//! **For want of room** cleaning goes on once it has begun until the policy is content. Without a
//! slice a request is served as soon as it can be. With one the drive alternates: it cleans for at
//! most a slice between two requests that can be served, one at a time, and those that arrive
//! meanwhile wait (Idler, IEEE TC 2020: up to 2 s per request, writes longer than reads). A write
//! without room is overtaken by requests that need none.

use super::cleaning_policy::CleaningPolicy;
use super::rewrite::Rewrite;
use crate::activity::Activity;
use crate::layer::Context;
use crate::saved::{Saved, SavedValue};
use crate::units::{Duration, Instant};
use alloc::collections::VecDeque;

/// When cleaning may go on.
#[derive(Debug, Saved)]
pub(super) struct Cleaner {
    #[saved(keep)]
    pub policy: CleaningPolicy,
    /// It is idle time.
    is_idle: bool,
    /// A rewrite has failed since the last request: the next one is not tried before another.
    has_failed: bool,
    blocking: Blocking,
    /// What those who watch were told that goes on: cleaning for want of room, and in idle time.
    told: [bool; 2],
}

/// A clean for want of room that is going on.
#[derive(Debug, Default, SavedValue)]
struct Blocking {
    is_on: bool,
    /// Requests that wait for the end of a slice, in the order of arrival.
    held: VecDeque<u32>,
    /// The request that is being served between two slices.
    serving: Option<u32>,
    /// Since when nothing but cleaning has been done.
    since: Instant,
    /// When it began.
    began: Instant,
}

impl Cleaner {
    /// Nothing is being cleaned.
    pub fn new(policy: CleaningPolicy) -> Cleaner {
        Cleaner {
            policy,
            is_idle: false,
            has_failed: false,
            blocking: Blocking::default(),
            told: [false; 2],
        }
    }

    /// A request has arrived, which ends idle time.
    pub fn request_arrived(&mut self) {
        self.is_idle = false;
        self.has_failed = false;
    }

    /// Idle time has begun.
    pub fn idle_began(&mut self) {
        self.is_idle = true;
    }

    /// True when another band may be cleaned because nothing has been asked for.
    pub fn is_idle_time(&self) -> bool {
        self.is_idle && !self.has_failed
    }

    /// A rewrite has failed.
    pub fn rewrite_failed(&mut self) {
        self.has_failed = true;
    }

    /// Tells those who watch what goes on, where that has changed.
    #[inline]
    pub fn tell(&mut self, rewrite: Option<&Rewrite>, ctx: &mut Context<'_>) {
        let cleans = |it: &Rewrite| it.pace.is_idle && !it.pace.is_paused;
        let now = [self.blocking.is_on, rewrite.is_some_and(cleans)];
        if now != self.told {
            self.tell_change(now, ctx);
        }
    }

    /// Nothing goes on any more.
    pub fn tell_end(&mut self, ctx: &mut Context<'_>) {
        self.tell_change([false; 2], ctx);
    }

    #[cold]
    fn tell_change(&mut self, now: [bool; 2], ctx: &mut Context<'_>) {
        let activities = [Activity::BlockingCleaning, Activity::IdleCleaning];
        for (activity, (is_on, was_on)) in
            activities.into_iter().zip(now.into_iter().zip(self.told))
        {
            match (was_on, is_on) {
                (false, true) => ctx.begin_activity(activity),
                (true, false) => ctx.end_activity(activity),
                _ => {}
            }
        }
        self.told = now;
    }

    /// True when a rewrite may do its next step.
    pub fn may_continue(&self, rewrite: Option<&Rewrite>, host_is_done: bool) -> bool {
        rewrite.is_none_or(|rewrite| match rewrite.pace.is_idle {
            true => rewrite.pace.is_finishing || (self.is_idle && !host_is_done),
            false => self.may_continue_for_room(),
        })
    }

    /// True when a rewrite for want of room may do its next step: no request is being served between
    /// two slices.
    fn may_continue_for_room(&self) -> bool {
        !self.is_serving()
    }

    /// A write has no room; true when none had wanted any before.
    pub fn begin_blocking(&mut self, now: Instant) -> bool {
        let begins = !self.blocking.is_on;
        if begins {
            self.blocking.is_on = true;
            (self.blocking.since, self.blocking.began) = (now, now);
        }
        begins
    }

    /// How long cleaning for want of room has gone on, while it does.
    pub fn blocked_for(&self, now: Instant) -> Option<Duration> {
        self.blocking.is_on.then(|| now.since(self.blocking.began))
    }

    /// True while cleaning for want of room goes on.
    pub fn is_blocking(&self) -> bool {
        self.blocking.is_on
    }

    /// Cleaning for want of room has come to its end; returns the requests that waited for their
    /// turn.
    pub fn end_blocking(&mut self) -> &mut VecDeque<u32> {
        self.blocking.is_on = false;
        self.blocking.serving = None;
        &mut self.blocking.held
    }

    /// The longest cleaning between two requests, while there is such a limit.
    fn slice(&self) -> Option<Duration> {
        self.policy.slice().filter(|_| self.blocking.is_on)
    }

    /// True when a request that could be served must wait for its turn.
    pub fn holds_requests(&self) -> bool {
        self.slice().is_some()
    }

    /// Puts a request behind those that wait for their turn.
    pub fn hold_request(&mut self, job: u32) {
        self.blocking.held.push_back(job);
    }

    /// True while a request is being served and cleaning stands still.
    fn is_serving(&self) -> bool {
        self.blocking.serving.is_some()
    }

    /// True when a request may be served now.
    pub fn is_turn(&self, now: Instant) -> bool {
        let is_over = |slice| self.blocking.since + slice <= now;
        self.slice().is_none_or(|slice| !self.is_serving() && is_over(slice))
    }

    /// A request that waited for its turn has been sent off.
    pub fn take_turn(&mut self, job: u32) {
        if self.slice().is_some() {
            self.blocking.serving = Some(job);
        }
    }

    /// The request has been answered, or waits for the rewrite itself.
    pub fn end_turn(&mut self, job: u32, now: Instant) {
        if self.blocking.serving == Some(job) {
            self.blocking.serving = None;
            self.blocking.since = now;
        }
    }

    /// The request that waits for its turn at this place of the queue.
    pub fn held(&self, at: usize) -> Option<u32> {
        self.blocking.held.get(at).copied()
    }

    /// Takes the request at this place out of the queue.
    pub fn remove_held(&mut self, at: usize) {
        self.blocking.held.remove(at);
    }

    /// When the present slice ends, if somebody waits for that.
    pub fn end_of_slice(&self, somebody_waits: bool, now: Instant) -> Option<Instant> {
        let waits = !self.blocking.held.is_empty() || somebody_waits;
        let end = self.blocking.since + self.slice()?;
        (waits && !self.is_serving() && end > now).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translation::persistent_cache::settings::{
        BlockingCleaning, CleanTo, PersistentCacheSettings,
    };
    use crate::units::BlockCount;
    use alloc::vec::Vec;

    fn cleaner(slice: Option<Duration>) -> Cleaner {
        let settings = PersistentCacheSettings {
            blocking: BlockingCleaning { low_permille: 500, slice, to: CleanTo::Home },
            ..PersistentCacheSettings::new(BlockCount(100))
        };
        Cleaner::new(CleaningPolicy::new(&settings))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn after_a_failure_the_next_clean_waits_for_a_request() {
        let mut cleaner = cleaner(None);
        assert!(!cleaner.is_idle_time());
        cleaner.idle_began();
        assert!(cleaner.is_idle_time());
        cleaner.rewrite_failed();
        assert!(!cleaner.is_idle_time());
        cleaner.request_arrived();
        assert!(!cleaner.is_idle_time(), "it is being served");
        cleaner.idle_began();
        assert!(cleaner.is_idle_time());
    }

    #[test]
    fn with_a_slice_one_request_is_served_between_two() {
        let mut cleaner = cleaner(Some(Duration::from_ms(100)));
        assert!(!cleaner.holds_requests(), "nothing is being cleaned");
        assert!(cleaner.begin_blocking(at(0)));
        assert!(!cleaner.begin_blocking(at(90)));
        assert_eq!(cleaner.blocked_for(at(90)), Some(Duration::from_ms(90)));
        assert!(cleaner.holds_requests());
        cleaner.hold_request(7);
        assert!(!cleaner.is_turn(at(99)));
        assert_eq!(cleaner.end_of_slice(false, at(99)), Some(at(100)));
        assert!(cleaner.is_turn(at(100)));
        cleaner.remove_held(0);
        cleaner.take_turn(7);
        assert!(!cleaner.is_turn(at(300)), "it is being served");
        assert!(!cleaner.may_continue_for_room(), "cleaning stands still");
        cleaner.end_turn(7, at(400));
        assert!(cleaner.may_continue_for_room() && !cleaner.is_turn(at(499)));
        cleaner.hold_request(8);
        assert_eq!(cleaner.end_blocking().drain(..).collect::<Vec<_>>(), [8]);
        assert!(!cleaner.is_blocking() && !cleaner.holds_requests());
    }
}
