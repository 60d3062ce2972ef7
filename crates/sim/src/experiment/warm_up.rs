//! The first part of a workload, which fills the stack and is in no figure.

use super::rounds::Rounds;
use super::run::{RunError, Task};
use super::workload::{Until, Workload};
use crate::replay::Replayer;
use crate::simulation::VirtualClock;
use imbrex_core::counters::{Counter, Counts};
use imbrex_core::engine::Engine;
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::Instant;
use imbrex_report::WarmUpUse;
use imbrex_stack::{ConfigError, Describe, DescribeNode, Measured};
use imbrex_traces::TraceError;
use serde::{Deserialize, Deserializer, Serialize};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much of a workload comes before what is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// So many requests of the trace, at least 1.
    Requests(u64),
    /// This share of its requests, above 0 and below 1, rounded down.
    Share(f64),
    /// Until every cache of the stack has evicted something and every log has begun to clean or has gone round.
    UntilFull,
}

/// What is accepted, in words.
const ACCEPTED: &str =
    "a count of requests such as 10000, a share of them such as 25%, or until-full";

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        let wrong = || format!("`{text}`: accepted: {ACCEPTED}");
        if text == "until-full" {
            return Ok(WarmUp::UntilFull);
        }
        let Some(percent) = text.strip_suffix('%') else {
            let requests = text.parse().map_err(|_| wrong())?;
            return if requests > 0 { Ok(WarmUp::Requests(requests)) } else { Err(wrong()) };
        };
        let share = percent.trim_end().parse::<f64>().map_err(|_| wrong())? / 100.0;
        match share > 0.0 && share < 1.0 {
            true => Ok(WarmUp::Share(share)),
            false => Err(format!("`{text}`: accepted: a share above 0 and below 100 %")),
        }
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmUp::Requests(requests) => write!(f, "{requests}"),
            WarmUp::Share(share) => write!(f, "{}%", share * 100.0),
            WarmUp::UntilFull => f.write_str("until-full"),
        }
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WarmUp, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a count of requests such as 10000, \"25%\" or \"until-full\""
        )]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(from)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for WarmUp {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            WarmUp::Requests(requests) => to.serialize_u64(*requests),
            text => to.serialize_str(&text.to_string()),
        }
    }
}

impl Workload {
    /// How many requests of the trace a replay of it has, all rounds together, skipped reads included.
    fn requests(&self, stop: &AtomicBool) -> Result<u64, TraceError> {
        let mut requests = 0u64;
        for record in self.until(stop)? {
            record?;
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
        replayer.take_error().map_err(|error| self.stopped(error))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_read_as_it_is_written() {
        for (text, expected) in [
            ("12000", WarmUp::Requests(12_000)),
            ("25%", WarmUp::Share(0.25)),
            ("0.5 %", WarmUp::Share(0.005)),
            ("until-full", WarmUp::UntilFull),
        ] {
            let read: WarmUp = text.parse().expect(text);
            assert_eq!(read, expected);
            assert_eq!(read.to_string().parse(), Ok(expected));
        }
        for text in ["0", "-1", "0%", "100%", "1.5", "full", "", "%", "1e400%", "nan%"] {
            let words = text.parse::<WarmUp>().unwrap_err();
            assert!(words.contains("accepted: a "), "{words}");
        }
    }
}
