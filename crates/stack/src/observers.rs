//! What is watched while a run lasts.

use super::config::{ConfigError, StackConfig};
use super::describe::Describe;
use imbrex_core::counters::Gauge;
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::Instant;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_report::{GaugeSeries, Recorder, Run, SERIES_BUCKETS};
use std::cell::RefCell;
use std::rc::Rc;

/// Feeds the fill of the persistent caches, all together, to a recorder.
pub struct FillObserver {
    translations: Vec<NodeId>,
    blocks: u64,
    /// None where one of them has no limit.
    entries_max: Option<u64>,
    last: (u64, u64),
    recorder: Rc<RefCell<Recorder>>,
}

impl FillObserver {
    /// An observer of a stack's translations, if it has any.
    pub fn new(describe: &Describe, recorder: Rc<RefCell<Recorder>>) -> FillObserver {
        let logs = || describe.translations();
        FillObserver {
            translations: logs().map(|(node, _)| node).collect(),
            blocks: logs().map(|(_, facts)| facts.log_blocks).sum(),
            entries_max: logs().map(|(_, facts)| facts.entries_max).sum(),
            last: (u64::MAX, u64::MAX),
            recorder,
        }
    }

    /// Looks at the stack and records a change.
    #[inline]
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        if self.translations.is_empty() {
            return;
        }
        let (mut used, mut entries) = (0, 0);
        for node in &self.translations {
            let counts = stack.counts(*node);
            used += counts.gauge(Gauge::PersistentCacheUsedBlocks);
            entries += counts.gauge(Gauge::PersistentCacheEntries);
        }
        if (used, entries) == self.last {
            return;
        }
        self.last = (used, entries);
        // Whichever of the two limits is nearer.
        let (level, limit) = match self.entries_max {
            Some(max) if entries * self.blocks > used * max => (entries, max),
            _ => (used, self.blocks),
        };
        self.recorder.borrow_mut().persistent_cache_used(now.0, level, limit);
    }
}

/// Records gauges that were asked for, by `NODE.GAUGE`.
pub struct GaugeObserver {
    watched: Vec<Watched>,
}

struct Watched {
    name: String,
    node: NodeId,
    gauge: Gauge,
    last: u64,
    series: GaugeSeries,
}

impl GaugeObserver {
    /// An observer of those of the `names` whose node the stack has.
    ///
    /// # Errors
    /// When a node of the stack has no such gauge.
    pub fn new(names: &[String], describe: &Describe) -> Result<GaugeObserver, ConfigError> {
        let mut watched = Vec::new();
        for name in names {
            let (node, gauge) = parts_of(name)?;
            let Some(node) = describe.nodes.iter().find(|known| known.name == node) else {
                continue;
            };
            let known = node.gauges();
            let Some(found) = known.iter().find(|known| known.name() == gauge) else {
                let names = known.iter().map(|gauge| gauge.name());
                let hint = nearest(gauge, names.clone())
                    .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(ConfigError::words(format!(
                    "series `{name}`: node `{}` has no gauge `{gauge}`{hint} (gauges: {})",
                    node.name,
                    listed(names)
                )));
            };
            watched.push(Watched {
                name: name.clone(),
                node: node.id,
                gauge: *found,
                last: 0,
                series: GaugeSeries::new(SERIES_BUCKETS),
            });
        }
        Ok(GaugeObserver { watched })
    }

    /// Looks at the stack and records what has changed.
    #[inline]
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        for watched in &mut self.watched {
            let level = stack.counts(watched.node).gauge(watched.gauge);
            if level != watched.last {
                watched.last = level;
                watched.series.set(now.0, level);
            }
        }
    }

    /// Ends the run and puts the series among its figures.
    pub fn finish(self, finished_at: Instant, run: &mut Run) {
        for mut watched in self.watched {
            let series = watched.series.means(finished_at.0, 1.0);
            run.figures.series.insert(watched.name, series);
        }
    }
}

/// The node and the gauge of a series.
fn parts_of(name: &str) -> Result<(&str, &str), ConfigError> {
    name.split_once('.').ok_or_else(|| {
        ConfigError::words(format!(
            "series `{name}`; accepted: NODE.GAUGE, such as cache.dirty_blocks"
        ))
    })
}

/// Finds series of nodes that no stack has.
///
/// # Errors
/// When there is one, or a name that is none of a series.
pub fn check_series<'a>(
    names: &[String],
    stacks: impl Iterator<Item = &'a StackConfig> + Clone,
) -> Result<(), ConfigError> {
    for name in names {
        let (node, _) = parts_of(name)?;
        if !stacks.clone().any(|stack| stack.has_node(node)) {
            let nodes = stacks.clone().flat_map(|stack| &stack.node);
            let hint = nearest(node, nodes.map(|node| node.name()))
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(ConfigError::words(format!(
                "series `{name}`: no stack has a node `{node}`{hint}"
            )));
        }
    }
    Ok(())
}
