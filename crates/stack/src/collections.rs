//! Collections of RAID 4SMR, watched while a run lasts.

use super::data_disk_table::DATA_DISK;
use super::describe::{Describe, DescribeNode};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::Instant;
use imbrex_report::{Cell, GaugeSeries, NodeTable, SERIES_BUCKETS};

struct Watched {
    node: NodeId,
    name: String,
    kind: &'static str,
    /// What the series say now; nothing until something was there.
    last: Option<[u64; 2]>,
    series: [GaugeSeries; 2],
}

/// Records what is on the data disks of a stack's arrays.
pub struct CollectionObserver(Vec<Watched>);

impl CollectionObserver {
    /// An observer of a stack's arrays with a data disk, if it has any.
    pub fn new(describe: &Describe) -> CollectionObserver {
        let has_table = |node: &&DescribeNode| node.facts.tables_of_kind().contains(&DATA_DISK);
        let watch = |node: &DescribeNode| Watched {
            node: node.id,
            name: node.name.clone(),
            kind: node.facts.kind(),
            last: None,
            series: [GaugeSeries::new(SERIES_BUCKETS), GaugeSeries::new(SERIES_BUCKETS)],
        };
        CollectionObserver(describe.nodes.iter().filter(has_table).map(watch).collect())
    }

    /// Whether there is anything to look at.
    pub fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Looks at the stack and records what has changed.
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        for array in &mut self.0 {
            let counts = stack.counts(array.node);
            let collections =
                counts.counter(Counter::Collections) + counts.counter(Counter::ForcedCollections);
            let found = [counts.gauge(Gauge::MapEntries), collections];
            if found == array.last.unwrap_or_default() {
                continue;
            }
            array.last = Some(found);
            for (series, level) in array.series.iter_mut().zip(found) {
                series.set(now.0, level);
            }
        }
    }

    /// The tables of a run that ended at an instant; none of an array that never had anything on its data disk.
    pub fn finish(self, finished_at: Instant) -> Vec<NodeTable> {
        let used = self.0.into_iter().filter(|array| array.last.is_some());
        let tables = used.map(|Watched { name, kind, mut series, .. }| {
            let [blocks, collections] = series.each_mut().map(|it| it.means(finished_at.0, 1.0));
            let values = blocks.values.iter().zip(&collections.values).enumerate();
            let bucket_s = blocks.bucket_s;
            let rows = values.map(|(at, (blocks, collections))| {
                [at as f64 * bucket_s, *blocks, *collections].map(Cell::Number).to_vec()
            });
            NodeTable::new(&name, kind, &DATA_DISK, rows.collect())
        });
        tables.collect()
    }
}
