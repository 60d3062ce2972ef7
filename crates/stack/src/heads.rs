//! The requests that schedulers hand down in a time that somebody asks for.

use super::describe::Describe;
use super::kinds::SchedulerFacts;
use super::measured::Measured;
use imbrex_core::scheduler::Dispatch;
use imbrex_core::units::Instant;
use imbrex_report::{HEADS_MAX, Head, Heads};

impl Describe {
    /// The schedulers, each with the name of its disk.
    fn schedulers(&self) -> impl Iterator<Item = (&str, &SchedulerFacts)> {
        self.nodes.iter().filter_map(|node| {
            let disk = self.below_of(&node.name).first()?;
            Some((disk.as_str(), node.facts.scheduler()?))
        })
    }

    /// Keeps what schedulers hand down from one instant up to another. False when there is no scheduler.
    pub fn watch_heads(&self, from: Instant, until: Instant) -> bool {
        let mut is_watched = false;
        for (_, scheduler) in self.schedulers() {
            scheduler.dispatches.watch(from, until, HEADS_MAX);
            is_watched = true;
        }
        is_watched
    }

    /// What was kept.
    pub(crate) fn heads(&self, measured: Measured) -> Heads {
        let mut heads = Heads::default();
        for (disk, scheduler) in self.schedulers() {
            let (dispatches, left_out) = scheduler.dispatches.take();
            heads.left_out += left_out;
            let told =
                dispatches.into_iter().map(|dispatch| head(disk, scheduler, dispatch, measured));
            heads.dispatches.extend(told);
        }
        heads
    }
}

fn head(disk: &str, scheduler: &SchedulerFacts, dispatch: Dispatch, measured: Measured) -> Head {
    let Dispatch { arrived, dispatched, extent, is_read, cause, why } = dispatch;
    let area = scheduler.boundary.map(|boundary| match extent.start < boundary {
        true => "front",
        false => "back",
    });
    Head {
        arrived_s: measured.seconds(arrived),
        dispatched_s: measured.seconds(dispatched),
        disk: disk.to_string(),
        address_block: extent.start.0,
        blocks: extent.blocks.0,
        operation: if is_read { "read" } else { "write" }.to_string(),
        area: area.map(str::to_string),
        cause: cause.name().to_string(),
        why: why.name().to_string(),
    }
}
