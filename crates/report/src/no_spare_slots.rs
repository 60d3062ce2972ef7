//! What is said of a cache whose flash has no slots to spare: blocks that come together do not lie together there, which
//! costs operations.

use super::report::{Report, Run};
use imbrex_core::counters::{Counter, Gauge};
use serde_json::Value;

impl Report {
    /// The line on caches without spare slots that had to use slots again.
    pub(super) fn no_spare_slots_line(&self) -> Option<String> {
        let caches = self.runs.iter().flat_map(Run::caches_without_spare_slots);
        let caches: Vec<String> = caches.collect();
        (!caches.is_empty()).then(|| {
            format!(
                "Without spare slots blocks that come together lie apart on the SSD. Operations there for a request: {}. \
                 A larger spare_share, where there is room, makes them fewer.",
                caches.join(", ")
            )
        })
    }
}

impl Run {
    /// What each cache without spare slots that had to use slots again asks of its disk.
    fn caches_without_spare_slots(&self) -> impl Iterator<Item = String> {
        let is_such = |name: &&String| {
            let count = |key: &str| self.nodes[*name].get(key).copied();
            // A buffer of zones has none, since its zones leave whole.
            let is_of_zones = count(Counter::ZonesEvicted.name()).is_some();
            let evicted = [Counter::CleanEvictions, Counter::DirtyEvictions];
            let evicted: u64 = evicted.iter().filter_map(|it| count(it.name())).sum();
            count(Gauge::SpareSlots.name()) == Some(0) && evicted > 0 && !is_of_zones
        };
        let operations =
            |name: &String| Some(format!("{:.1} ({})", self.operations_of(name)?, self.label()));
        self.nodes.keys().filter(is_such).filter_map(operations)
    }

    /// Operations on the disk of a cache for each request.
    fn operations_of(&self, cache: &str) -> Option<f64> {
        let name = self.disk_below(self.node(cache)?.get("below")?.get("flash")?.as_str()?)?;
        let disk = self.disks.iter().find(|disk| disk.name == name)?;
        let of = |counter| self.operations(disk, counter);
        let operations = of(Counter::Reads)? + of(Counter::Writes)?;
        Some(operations as f64 / self.host.requests.max(1) as f64)
    }

    /// The node of the stack file with this name.
    fn node(&self, name: &str) -> Option<&Value> {
        let nodes = self.configuration.get("node")?.as_array()?;
        nodes.iter().find(|node| node.get("name").and_then(Value::as_str) == Some(name))
    }

    /// The disk on which a node stands alone.
    fn disk_below<'a>(&'a self, node: &'a str) -> Option<&'a str> {
        match self.node(node)?.get("below") {
            Some(below) => self.disk_below(below.as_str()?),
            None => Some(node),
        }
    }
}
