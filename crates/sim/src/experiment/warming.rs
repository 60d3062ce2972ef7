//! The replay of the first part of a workload, which fills the stack and is in no figure.

use super::rounds::Rounds;
use super::run::{RunError, Task};
use super::warm_up::WarmUp;
use super::workload::{Until, Workload};
use crate::record_source::RecordSource;
use crate::replay::Replayer;
use crate::simulation::VirtualClock;
use imbrex_core::counters::{Counter, Counts};
use imbrex_core::engine::Engine;
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::Instant;
use imbrex_report::WarmUpUse;
use imbrex_stack::{ConfigError, Describe, DescribeNode, Measured};
use imbrex_traces::TraceError;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

impl Workload {
    /// How many requests of the trace a replay of it has, all rounds together, skipped reads included.
    pub(super) fn requests(&self, stop: &AtomicBool) -> Result<u64, TraceError> {
        let mut requests = 0u64;
        let mut records = self.until(stop)?;
        while records.next_record()?.is_some() {
            requests += 1;
        }
        Ok(requests.saturating_mul(u64::from(self.repeat)))
    }
}

/// A part of a replay behind its warm-up, or all of it.
pub(super) struct Begun {
    /// What the warm-up was; none without one.
    pub warm_up: Option<WarmUpUse>,
    /// When what is measured begins.
    pub from: Instant,
}

impl Begun {
    /// What is measured of a replay that ended at an instant.
    pub fn measured(&self, until: Instant) -> Measured {
        Measured { from: self.from, until }
    }
}

impl Task<'_> {
    /// Replays the warm-up, if there is one, and waits until nothing is under way. What is counted and recorded
    /// from then on is what comes behind it.
    pub(super) fn warm_up(
        &self,
        replayer: &mut Replayer<Until<'_, Rounds>>,
        engine: &mut Engine,
        clock: &mut VirtualClock,
        describe: &Describe,
        stop: &AtomicBool,
    ) -> Result<Begun, RunError> {
        let Some(warm_up) = self.workload.warm_up else {
            return Ok(Begun { warm_up: None, from: Instant::ZERO });
        };
        let hold_after = match warm_up {
            WarmUp::Requests(requests) => requests,
            WarmUp::Share(share) => (self.workload.requests(stop)? as f64 * share) as u64,
            WarmUp::UntilFull => u64::MAX,
        };
        let mut filling = Filling::of(describe, warm_up);
        let hold_after = match filling.is_over() && warm_up == WarmUp::UntilFull {
            // There is nothing that could be filled.
            true => 0,
            false => hold_after,
        };
        let hold_after = replayer.hold_after(hold_after);
        engine.run(clock, replayer, &mut |_, stack| filling.observe(stack, &hold_after));
        self.check_replayed(replayer, &engine.stack)?;
        // What was stopped means nothing.
        let is_stopped = stop.load(Ordering::Relaxed);
        let requests = match replayer.records_before_held() {
            None if !is_stopped => return Err(self.too_short(warm_up, &filling).into()),
            requests => requests.unwrap_or_default(),
        };
        let from = clock.now();
        replayer.begin_measuring(from);
        replayer.records_mut().records.restart_captured();
        describe.restart(&mut engine.stack, from);
        let duration_s = from.0 as f64 / 1e9;
        Ok(Begun { warm_up: Some(WarmUpUse { requests, duration_s }), from })
    }

    fn too_short(&self, warm_up: WarmUp, filling: &Filling) -> ConfigError {
        let (path, system) = (&self.workload.path, &self.case.config.name);
        ConfigError::words(match filling.left.first() {
            Some(node) => format!(
                "{path}: warm-up {warm_up}: at its end node `{}` of system `{system}` is not full ({}); accepted: \
                 a longer workload, such as the same one several times over, or a count or a share",
                node.name, node.lacks
            ),
            None => format!(
                "{path}: warm-up {warm_up}: there is no request behind it to be measured; accepted: fewer than \
                 the trace has"
            ),
        })
    }
}

/// The nodes of a stack that are not full yet.
struct Filling {
    left: Vec<FillingNode>,
}

struct FillingNode {
    node: NodeId,
    name: String,
    /// Each of these says by itself that it is full: a counter that has passed a number.
    signs: Vec<(Counter, u64)>,
    /// What did not happen.
    lacks: &'static str,
}

impl Filling {
    /// The nodes to be filled, if that is what is asked for.
    fn of(describe: &Describe, warm_up: WarmUp) -> Filling {
        let nodes = describe.nodes.iter().filter(|_| warm_up == WarmUp::UntilFull);
        Filling { left: nodes.filter_map(FillingNode::of).collect() }
    }

    /// Whether none is left.
    fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Looks at the stack, and holds back what comes next when all are full.
    fn observe(&mut self, stack: &Stack, hold_after: &Cell<u64>) {
        if self.is_over() {
            return;
        }
        self.left.retain(|node| !node.is_full(stack.counts(node.node)));
        if self.is_over() {
            hold_after.set(0);
        }
    }
}

impl FillingNode {
    /// What a node is to be filled with; none for one that holds nothing.
    fn of(node: &DescribeNode) -> Option<FillingNode> {
        let log_blocks = node.facts.translation().map(|facts| facts.log_blocks);
        let signs_of_kinds: [(&[Counter], &str); 6] = [
            (&[Counter::BandsRewritten], "its log has not gone round, and no band was rewritten"),
            (&[Counter::CleanEvictions, Counter::DirtyEvictions], "it has evicted nothing"),
            (&[Counter::Evictions], "it has evicted nothing"),
            (&[Counter::SegmentsRewritten], "no segment was rewritten"),
            (&[Counter::GcRuns], "nothing was collected"),
            (&[Counter::Collections, Counter::ForcedCollections], "nothing was collected"),
        ];
        let counted = node.counters();
        let (counters, lacks) = signs_of_kinds
            .into_iter()
            .find(|(counters, _)| counters.iter().any(|counter| counted.contains(counter)))?;
        let mut signs: Vec<_> = counters.iter().map(|counter| (*counter, 0)).collect();
        signs.extend(log_blocks.map(|blocks| (Counter::PersistentCacheAppendedBlocks, blocks)));
        Some(FillingNode { node: node.id, name: node.name.clone(), signs, lacks })
    }

    fn is_full(&self, counts: &Counts) -> bool {
        self.signs.iter().any(|(counter, passed)| counts.counter(*counter) > *passed)
    }
}
