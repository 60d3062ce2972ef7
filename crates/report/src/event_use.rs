//! What came of commands to nodes.

use super::report::{Report, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command to a node, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventUse {
    /// When it was given, in seconds from the start of the replay.
    pub at_s: f64,
    /// The name of the node.
    pub node: String,
    /// What it was to do.
    pub command: String,
    /// When it ended.
    pub ended_at_s: f64,
    /// `done`, or why it came to nothing.
    pub outcome: String,
    /// What `status` has told, by name; absent of other commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, u64>,
}

impl EventUse {
    fn sentence(&self, run: &Run) -> String {
        let facts = self.facts.iter();
        let facts: String = facts.map(|(name, value)| format!(", {name} {value}")).collect();
        format!(
            "{}: at {:.3} s {} {}, ended at {:.3} s: {}{facts}",
            run.label(),
            self.at_s,
            self.node,
            self.command,
            self.ended_at_s,
            self.outcome
        )
    }
}

impl Report {
    /// A line for each command of each run.
    pub(super) fn event_lines(&self) -> Vec<String> {
        let runs = self.runs.iter();
        let lines = runs.flat_map(|run| run.events.iter().map(|event| event.sentence(run)));
        lines.collect()
    }
}
