//! What is watched while a run lasts.

use super::config::{ConfigError, StackConfig};
use super::describe::{Describe, DescribeNode};
use imbrex_core::activity::{Activities, Activity};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::Instant;
use imbrex_core::words::Words;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_report::{
    ActivityState, GaugeSeries, GhostUse, Phase, Recorder, Run, SERIES_BUCKETS, Series,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A rebuild tells how far it is in millionths.
const MILLIONTHS: f64 = 1e6;

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
        if (used, entries) != self.last {
            self.set(now, used, entries);
        }
    }

    #[inline(never)]
    fn set(&mut self, now: Instant, used: u64, entries: u64) {
        self.last = (used, entries);
        // Whichever of the two limits is nearer.
        let (level, limit) = match self.entries_max {
            Some(max) if entries * self.blocks > used * max => (entries, max),
            _ => (used, self.blocks),
        };
        self.recorder.borrow_mut().persistent_cache_used(now.0, level, limit);
    }
}

/// What an array says of its members.
#[derive(Clone, Copy, Default)]
struct Members {
    missing: u64,
    rebuilding: u64,
    /// Of the rebuild, in millionths.
    progress: u64,
}

/// Feeds the phases of a stack's arrays to a recorder, and records how rebuilds go on.
pub struct ArrayObserver {
    /// The nodes of the arrays, in their order.
    nodes: Vec<NodeId>,
    arrays: Vec<WatchedArray>,
    phase: Phase,
    recorder: Rc<RefCell<Recorder>>,
}

struct WatchedArray {
    name: String,
    /// What the series says now, in millionths.
    progress: u64,
    /// When that changed last.
    changed_at: Instant,
    /// None until a member is rebuilt.
    series: Option<GaugeSeries>,
}

impl ArrayObserver {
    /// An observer of a stack's arrays, if it has any.
    pub fn new(describe: &Describe, recorder: Rc<RefCell<Recorder>>) -> ArrayObserver {
        let has_members = |node: &&DescribeNode| node.gauges().contains(&Gauge::MissingMembers);
        let nodes = || describe.nodes.iter().filter(has_members);
        ArrayObserver {
            nodes: nodes().map(|node| node.id).collect(),
            arrays: nodes().map(|node| WatchedArray::new(&node.name)).collect(),
            phase: Phase::Healthy,
            recorder,
        }
    }

    /// Whether there is anything to look at.
    pub fn has_any(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Looks at the stack and records what has changed. What was answered at this instant counts to the
    /// phase before.
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        let (mut missing, mut rebuilding) = (0, 0);
        for (array, node) in self.arrays.iter_mut().zip(&self.nodes) {
            let counts = stack.counts(*node);
            let members = Members {
                missing: counts.gauge(Gauge::MissingMembers),
                rebuilding: counts.gauge(Gauge::RebuildingMembers),
                progress: counts.gauge(Gauge::RebuildProgress),
            };
            missing += members.missing;
            rebuilding += members.rebuilding;
            array.observe(now, &members);
        }
        self.set_phase(now, missing, rebuilding);
    }

    fn set_phase(&mut self, now: Instant, missing: u64, rebuilding: u64) {
        let phase = self.phase.next(missing, rebuilding);
        if phase != self.phase {
            self.phase = phase;
            self.recorder.borrow_mut().set_phase(now.0, phase);
        }
    }

    /// How far the rebuilds of each array were over a run that ended at `finished_at`, or up to the end of
    /// the last rebuild where that came later; by the name of the array, and none of an array in which no
    /// member was rebuilt.
    pub fn finish(self, finished_at: Instant) -> BTreeMap<String, Series> {
        let rebuilds = self.arrays.into_iter().filter_map(|array| {
            let end = finished_at.max(array.changed_at);
            let series = array.series?.means(end.0, 1.0 / MILLIONTHS);
            Some((array.name, series))
        });
        rebuilds.collect()
    }
}

impl WatchedArray {
    fn new(name: &str) -> WatchedArray {
        WatchedArray {
            name: name.to_string(),
            progress: 0,
            changed_at: Instant::ZERO,
            series: None,
        }
    }

    /// Records how far the rebuild is, nothing where no member is rebuilt.
    fn observe(&mut self, now: Instant, members: &Members) {
        let is_rebuilding = members.rebuilding > 0;
        let progress = if is_rebuilding { members.progress } else { 0 };
        if is_rebuilding && self.series.is_none() {
            self.series = Some(GaugeSeries::new(SERIES_BUCKETS));
        }
        if progress == self.progress {
            return;
        }
        self.progress = progress;
        self.changed_at = now;
        let series = self.series.as_mut().expect("only a rebuild has progress");
        series.set(now.0, progress);
    }
}

/// Feeds what nodes do that requests may feel, and how many they hold back, to a recorder.
pub struct ActivityObserver {
    activities: Activities,
    controllers: Vec<NodeId>,
    /// The changes of the activities that were seen.
    seen: u64,
    last: ActivityState,
    recorder: Rc<RefCell<Recorder>>,
}

impl ActivityObserver {
    /// An observer of a stack.
    pub fn new(
        describe: &Describe,
        stack: &Stack,
        recorder: Rc<RefCell<Recorder>>,
    ) -> ActivityObserver {
        let holds = |node: &&DescribeNode| node.gauges().contains(&Gauge::Held);
        let controllers = describe.nodes.iter().filter(holds).map(|node| node.id);
        ActivityObserver {
            activities: stack.activities(),
            controllers: controllers.collect(),
            seen: 0,
            last: ActivityState::default(),
            recorder,
        }
    }

    /// Looks at the stack and records what has changed.
    #[inline]
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        let changes = self.activities.changes();
        if changes != self.seen || !self.controllers.is_empty() {
            self.seen = changes;
            self.look(now, stack);
        }
    }

    #[inline(never)]
    fn look(&mut self, now: Instant, stack: &Stack) {
        let held = |node: &NodeId| stack.counts(*node).gauge(Gauge::Held);
        let state = ActivityState {
            is_on: std::array::from_fn(|at| self.activities.nodes(Activity::VALUES[at]) > 0),
            held: self.controllers.iter().map(held).sum(),
        };
        if state != self.last {
            self.last = state;
            self.recorder.borrow_mut().set_activities(now.0, state);
        }
    }
}

/// Compares the books of controllers with the drives that they are of, at each report.
pub struct GhostObserver {
    ghosts: Vec<WatchedGhost>,
}

struct WatchedGhost {
    name: String,
    controller: NodeId,
    translation: NodeId,
    blocks: u64,
    entries_max: Option<u64>,
    reports: u64,
    error_sum: f64,
    error_max: f64,
}

impl GhostObserver {
    /// An observer of those controllers of a stack that keep books of one translation.
    pub fn new(describe: &Describe) -> GhostObserver {
        let keeps = |node: &&DescribeNode| node.gauges().contains(&Gauge::GhostUsed);
        let ghosts = describe.nodes.iter().filter(keeps).filter_map(|node| {
            let translations = describe.translations().filter_map(|(id, facts)| {
                let name = &describe.nodes.iter().find(|it| it.id == id)?.name;
                describe.is_below(name, &node.name).then_some((id, facts))
            });
            let [(translation, facts)] = translations.collect::<Vec<_>>()[..] else {
                return None;
            };
            Some(WatchedGhost {
                name: node.name.clone(),
                controller: node.id,
                translation,
                blocks: facts.log_blocks,
                entries_max: facts.entries_max,
                reports: 0,
                error_sum: 0.0,
                error_max: 0.0,
            })
        });
        GhostObserver { ghosts: ghosts.collect() }
    }

    /// Whether there is anything to look at.
    pub fn has_any(&self) -> bool {
        !self.ghosts.is_empty()
    }

    /// Looks at the stack; compares where a controller has ended a period.
    pub fn observe(&mut self, stack: &Stack) {
        for ghost in &mut self.ghosts {
            let reports = stack.counts(ghost.controller).counter(Counter::ReportPeriods);
            if reports != ghost.reports {
                ghost.reports = reports;
                ghost.compare(stack);
            }
        }
    }

    /// What there is to say of each controller that has ended a period.
    pub fn finish(self) -> BTreeMap<String, GhostUse> {
        let told = self.ghosts.into_iter().filter(|ghost| ghost.reports > 0);
        let of = |ghost: WatchedGhost| {
            let WatchedGhost { reports, error_sum, error_max, .. } = ghost;
            let ghost_error_mean = error_sum / reports as f64;
            (ghost.name, GhostUse { reports, ghost_error_mean, ghost_error_max: error_max })
        };
        told.map(of).collect()
    }
}

impl WatchedGhost {
    fn compare(&mut self, stack: &Stack) {
        let believed = stack.counts(self.controller).gauge(Gauge::GhostUsed) as f64 / MILLIONTHS;
        let drive = stack.counts(self.translation);
        let share = |used: u64, limit: u64| used as f64 / limit.max(1) as f64;
        let blocks = share(drive.gauge(Gauge::PersistentCacheUsedBlocks), self.blocks);
        let entries = self
            .entries_max
            .map_or(0.0, |most| share(drive.gauge(Gauge::PersistentCacheEntries), most));
        let error = (believed - blocks.max(entries)).abs();
        self.error_sum += error;
        self.error_max = self.error_max.max(error);
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

    /// Whether there is anything to look at.
    pub fn has_any(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Looks at the stack and records what has changed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_report::ReplayMode;

    const MS: u64 = 1_000_000;

    #[test]
    fn arrays_are_in_a_phase_together_and_each_rebuild_has_a_series() {
        let arrays = ["a", "b"].map(WatchedArray::new).into();
        let recorder = Rc::new(RefCell::new(Recorder::new()));
        let shared = Rc::clone(&recorder);
        let mut observer =
            ArrayObserver { nodes: vec![], arrays, phase: Phase::Healthy, recorder: shared };
        let lost = Members { missing: 1, ..Members::default() };
        let rebuilt = |progress| Members { rebuilding: 1, progress, ..Members::default() };
        let whole = Members::default();
        for (ms, a, b) in [
            (0, whole, whole),
            (100, lost, whole),
            (200, rebuilt(0), lost),
            (300, rebuilt(500_000), lost),
            // The gauge of a rebuild that is over may stay.
            (400, Members { progress: 1_000_000, ..whole }, lost),
            (500, whole, whole),
        ] {
            let now = Instant(ms * MS);
            observer.arrays[0].observe(now, &a);
            observer.arrays[1].observe(now, &b);
            observer.set_phase(now, a.missing + b.missing, a.rebuilding + b.rebuilding);
        }
        let rebuilds = observer.finish(Instant(512 * MS));
        assert_eq!(rebuilds.keys().collect::<Vec<_>>(), ["a"], "no member of b was rebuilt");
        let series = &rebuilds["a"];
        assert_eq!((series.bucket_s, series.values.len()), (0.001, 512));
        let at = [250, 350, 450].map(|ms| series.values[ms]);
        assert_eq!(at, [0.0, 0.5, 0.0]);
        let mut outlasting = WatchedArray::new("c");
        outlasting.observe(Instant(0), &rebuilt(1));
        outlasting.observe(Instant(10 * MS), &rebuilt(250_000));
        outlasting.observe(Instant(20 * MS), &whole);
        let observer = ArrayObserver {
            nodes: vec![],
            arrays: vec![outlasting],
            phase: Phase::Healthy,
            recorder: Rc::default(),
        };
        let rebuilds = observer.finish(Instant(5 * MS));
        assert_eq!(rebuilds["c"].values.len(), 20, "up to the end of the rebuild");
        assert_eq!(rebuilds["c"].values[19], 0.25);
        let mut run = Run::new("two", ReplayMode::Live);
        recorder.take().finish(512 * MS, &mut run);
        let phases = run.phases.expect("members were lost");
        let told: Vec<_> =
            phases.iter().map(|(phase, of)| (phase.name(), of.start_s, of.total_s)).collect();
        assert_eq!(
            told,
            [
                ("healthy", 0.0, 0.1),
                ("degraded", 0.1, 0.2),
                ("rebuilding", 0.2, 0.2),
                ("after", 0.5, 0.012)
            ]
        );
    }
}
