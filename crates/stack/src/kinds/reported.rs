//! How a kind of node is reported.

use crate::measured::Measured;
use crate::roles::NodeRole;
use imbrex_core::counters::{Counter, Group};
use imbrex_core::units::Instant;
use imbrex_report::{Cell, Run, TableOfKind};
use serde_json::{Map, Value};

/// How a kind of node is reported.
pub(crate) trait Reported {
    /// What it counts in the core.
    fn groups(&self) -> Vec<Group> {
        vec![]
    }

    /// The keys whose value follows from more than the node: what lies below, the workload, the scale.
    fn resolved(&self) -> Map<String, Value> {
        Map::new()
    }

    /// What it is to the keys of a run that name no node.
    fn roles(&self) -> Vec<NodeRole> {
        vec![]
    }

    /// Room in which it buffers or caches data of the host; none where it does not.
    fn buffers(&self) -> Option<BufferedIn> {
        None
    }

    /// Whether it takes writes to a block of the node with its data that has gone bad: it rewrites it.
    fn rewrites_bad_block(&self, _at: u64) -> bool {
        false
    }

    /// What is counted outside of the core.
    fn others(&self) -> Vec<(Counter, u64)> {
        vec![]
    }

    /// Adds what it is by its settings to the keys of a run that are about its roles. What the nodes
    /// before it have added is there.
    fn tell(&self, _run: &mut Run) {}

    /// The tables and series of its own of what was measured: those of `Kind::TABLES` that it has something
    /// for, with their rows.
    fn tables(&self, _measured: Measured) -> Vec<(TableOfKind, Rows)> {
        vec![]
    }

    /// What was counted outside of the core is forgotten, so that what comes from an instant on is counted.
    fn restart(&self, _from: Instant) {}
}

/// Room in which a node buffers or caches data of the host. What finds the data there is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferedIn {
    /// So many bytes of memory of its own.
    Memory(u64),
    /// So many bytes of the node behind its first port.
    FirstPort(u64),
}

/// The rows of a table: a value for each column in each.
pub(super) type Rows = Vec<Vec<Cell>>;
