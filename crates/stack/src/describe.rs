//! What a report needs to know of a stack beside what the stack itself has counted.

use super::config::StackConfig;
use super::kinds::{DescribeDisk, Facts, LogUse, TranslationFacts};
use super::measured::Measured;
use super::roles::NodeRole;
use imbrex_core::command::Without;
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::{BlockCount, Instant};
use imbrex_report::{NodeTable, ReplayMode, RequestCounts, Run};
use std::collections::BTreeMap;

/// What a report needs to know of a stack.
pub struct Describe {
    system: String,
    configuration: serde_json::Value,
    /// The names of the nodes below each node.
    below: BTreeMap<String, Vec<String>>,
    /// The nodes, in the order of the stack file.
    pub nodes: Vec<DescribeNode>,
}

/// What a report needs to know of a node.
pub struct DescribeNode {
    /// Its name.
    pub name: String,
    /// What the stack calls it.
    pub id: NodeId,
    /// Blocks that it offers.
    pub blocks: BlockCount,
    /// Its keys as its layer has got them.
    pub resolved: serde_json::Value,
    /// What its kind has to say.
    pub facts: Facts,
}

impl DescribeNode {
    /// The gauges that it has.
    pub fn gauges(&self) -> Vec<Gauge> {
        let groups = self.facts.reported().groups();
        groups.iter().flat_map(|group| group.gauges).copied().collect()
    }

    /// The counters that its layer has.
    pub fn counters(&self) -> Vec<Counter> {
        let groups = self.facts.reported().groups();
        groups.iter().flat_map(|group| group.counters).copied().collect()
    }

    /// All that was counted there, by the names of reports.
    fn counted(&self, counts: &Counts) -> Vec<(&'static str, u64)> {
        let reported = self.facts.reported();
        let mut counted = Vec::new();
        for group in reported.groups() {
            counted.extend(group.counters.iter().map(|it| (it.name(), counts.counter(*it))));
            counted.extend(group.gauges.iter().map(|it| (it.name(), counts.gauge(*it))));
        }
        counted.extend(reported.others().into_iter().map(|(it, value)| (it.name(), value)));
        counted
    }
}

impl Describe {
    /// A description of a stack of which nothing is built yet.
    pub fn new(config: &StackConfig) -> Describe {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        let below = config.node.iter().map(|node| (node.name().to_string(), owned(node.below())));
        Describe {
            system: config.name.clone(),
            configuration: serde_json::to_value(config).expect("settings have only string keys"),
            below: below.collect(),
            nodes: Vec::new(),
        }
    }

    /// The nodes of a role, in the order of the stack file.
    pub fn of_role(&self, role: NodeRole) -> impl Iterator<Item = &DescribeNode> + Clone {
        let has_role = move |node: &&DescribeNode| node.facts.reported().roles().contains(&role);
        self.nodes.iter().filter(has_role)
    }

    /// Whether a node has a role.
    pub fn has(&self, role: NodeRole) -> bool {
        self.of_role(role).next().is_some()
    }

    /// The only node of a role.
    fn only(&self, role: NodeRole) -> Option<&DescribeNode> {
        let mut nodes = self.of_role(role);
        let node = nodes.next()?;
        nodes.next().is_none().then_some(node)
    }

    /// The only write-back cache.
    pub fn cache(&self) -> Option<NodeId> {
        self.only(NodeRole::Cache).map(|node| node.id)
    }

    /// The only drive-managed translation.
    pub fn translation(&self) -> Option<NodeId> {
        self.only(NodeRole::Translation).map(|node| node.id)
    }

    /// The only zones: of a host-managed disk, or of the translation of a host-aware one.
    pub fn zones(&self) -> Option<NodeId> {
        self.only(NodeRole::Zones).map(|node| node.id)
    }

    /// What the nodes of a role have counted together; none without such a node.
    pub fn counts_of(&self, role: NodeRole, stack: &Stack) -> Option<Counts> {
        let mut nodes = self.of_role(role).peekable();
        nodes.peek()?;
        let mut all = Counts::default();
        for node in nodes {
            let mut others = self.of_role(role);
            let is_topmost = !others.any(|other| self.is_below(&node.name, &other.name));
            all.add_node(stack.counts(node.id), is_topmost);
        }
        Some(all)
    }

    /// The names of the nodes below one.
    pub(crate) fn below_of(&self, name: &str) -> &[String] {
        &self.below[name]
    }

    /// The names of the windows that are lost together with each disk.
    pub fn windows_lost(&self, windows: &[String], stack: &Stack) -> BTreeMap<String, Vec<String>> {
        let disks = self.nodes.iter().filter(|node| node.facts.disk().is_some());
        let of_disk = |disk: &DescribeNode| {
            let above = stack.without(disk.id).into_iter();
            let above = above.filter(|(_, without)| *without == Without::Lost);
            let mut lost: Vec<&str> = above.filter_map(|(node, _)| self.name_of(node)).collect();
            lost.push(&disk.name);
            let is_lost = |name: &&String| lost.contains(&name.as_str());
            (disk.name.clone(), windows.iter().filter(is_lost).cloned().collect())
        };
        disks.map(of_disk).collect()
    }

    /// Whether a node lies below another one, however far.
    pub(crate) fn is_below(&self, name: &str, upper: &str) -> bool {
        let ports = &self.below[upper];
        ports.iter().any(|port| port == name || self.is_below(name, port))
    }

    /// The drive-managed translations, with what their kind has to say.
    pub fn translations(&self) -> impl Iterator<Item = (NodeId, &TranslationFacts)> {
        self.nodes.iter().filter_map(|node| {
            let facts = node.facts.translation()?;
            Some((node.id, facts))
        })
    }

    /// The only one of them.
    fn only_translation(&self) -> Option<(NodeId, &TranslationFacts)> {
        let mut translations = self.translations();
        let found = translations.next()?;
        translations.next().is_none().then_some(found)
    }

    /// Capacity of the only cache; one without a bound has that of the device.
    pub fn capacity_blocks(&self) -> Option<u64> {
        let facts = self.only(NodeRole::Cache)?.facts.cache()?;
        Some(facts.capacity_blocks)
    }

    /// Slots of the only persistent cache.
    pub fn persistent_cache_blocks(&self) -> Option<u64> {
        self.only_translation().map(|(_, facts)| facts.log_blocks)
    }

    /// The disks, in the order of their ids.
    pub fn disks(&self) -> impl Iterator<Item = &DescribeDisk> {
        self.nodes.iter().filter_map(|node| node.facts.disk())
    }

    /// Blocks that a node offers.
    pub fn blocks_of(&self, name: &str) -> Option<BlockCount> {
        let node = self.nodes.iter().find(|node| node.name == name)?;
        Some(node.blocks)
    }

    /// What a node has to say by its kind.
    pub fn facts_of(&self, name: &str) -> Option<&Facts> {
        let node = self.nodes.iter().find(|node| node.name == name)?;
        Some(&node.facts)
    }

    /// The name of a node.
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        let found = self.nodes.iter().find(|known| known.id == node)?;
        Some(&found.name)
    }

    /// Tells a run the keys of the nodes, as they are configured and resolved.
    pub fn tell_keys(&self, run: &mut Run) {
        run.configuration = self.configuration.clone();
        let resolved = self.nodes.iter().map(|node| (node.name.clone(), node.resolved.clone()));
        run.resolved = resolved.collect();
    }

    /// A run with everything that was counted, without latencies and figures.
    pub fn run(&self, stack: &Stack, counts: RequestCounts, mode: ReplayMode) -> Run {
        let mut run = self.run_of_host(counts, mode);
        self.tell_keys(&mut run);
        for role in NodeRole::ALL {
            if let Some(counts) = self.counts_of(role, stack) {
                role.tell(&counts, &mut run);
                let names = self.of_role(role).map(|node| node.name.clone());
                run.roles.insert(role.name().to_string(), names.collect());
            }
        }
        for node in &self.nodes {
            node.facts.reported().tell(&mut run);
        }
        run.log.no_cleaning = self.no_cleaning(stack, counts.write_blocks > 0);
        run.hardware = Some(self.hardware());
        run.disks = self.disks().map(DescribeDisk::disk_use).collect();
        run.nodes = self.node_counts(stack);
        run.derive_ratios();
        run
    }

    /// A run of which nothing is known but what the host asked for.
    pub fn run_of_host(&self, counts: RequestCounts, mode: ReplayMode) -> Run {
        let mut run = Run::new(&self.system, mode);
        run.host = counts;
        run
    }

    /// All that was counted, by node and by counter.
    fn node_counts(&self, stack: &Stack) -> BTreeMap<String, BTreeMap<String, u64>> {
        let of_node = |node: &DescribeNode| {
            let all = node.counted(stack.counts(node.id)).into_iter();
            let named = all.map(|(name, value)| (name.to_string(), value));
            (node.name.clone(), named.collect())
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// All that was counted at a node, by counter; `counts` are those of the stack.
    pub fn counted(&self, node: NodeId, counts: &Counts) -> Vec<(&'static str, u64)> {
        let found = self.nodes.iter().find(|known| known.id == node);
        found.map_or_else(Vec::new, |node| node.counted(counts))
    }

    /// How full the persistent cache is, in a stack that has one and no other.
    pub fn log_use(&self, stack: &Stack) -> Option<LogUse> {
        let (node, facts) = self.only_translation()?;
        Some(facts.log_use(stack.counts(node)))
    }

    /// What was counted so far is forgotten, in the stack and beside it, so that what comes from an instant on is
    /// counted.
    pub fn restart(&self, stack: &mut Stack, from: Instant) {
        stack.restart_counts();
        for node in &self.nodes {
            node.facts.reported().restart(from);
        }
    }

    /// Adds what is known when a run has ended: the tables and series of the nodes, and the map of writes to
    /// home bands.
    pub fn finish(&self, measured: Measured, run: &mut Run) {
        for node in &self.nodes {
            let (kind, declared) = (node.facts.kind(), node.facts.tables_of_kind());
            for (table, rows) in node.facts.reported().tables(measured) {
                assert!(declared.contains(&table), "{kind} declares {}", table.name);
                run.figures.tables.push(NodeTable::new(&node.name, kind, &table, rows));
            }
        }
        run.figures.heads = self.heads(measured);
        for disk in self.disks() {
            if let Some(map) = disk.statistics().write_map(measured.until) {
                run.figures.band_writes = map;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Built, Measured, Plan, Setting, StackConfig, ready_made};
    use imbrex_core::buffer::ContentKind;
    use imbrex_core::counters::{GROUPS, JOURNAL, declared};
    use imbrex_core::units::{BLOCK_BYTES, Instant};
    use imbrex_report::{REPORT_FILES, ReplayMode, Report, RequestCounts, Run};
    use imbrex_report::{Workload, WorkloadKind};

    /// A ready-made stack.
    fn built(name: &str) -> (StackConfig, Built) {
        built_with(name, &[])
    }

    /// The same with settings.
    fn built_with(name: &str, settings: &[Setting]) -> (StackConfig, Built) {
        let config = StackConfig::load(name, settings).expect("a ready-made stack");
        let plan = Plan::new(&config, &BuildOptions::simulate(1)).expect("a plan");
        let footprint = Some(crate::Footprint::whole_device(plan.blocks().bytes()));
        let built = plan.build(footprint, None, ContentKind::Counted).expect("a stack");
        (config, built)
    }

    /// A run of it in which nothing happened.
    fn idle_run(name: &str) -> Run {
        let (_, built) = built(name);
        let mode = ReplayMode::ClosedLoop { depth: 1 };
        let mut run = built.describe.run(&built.stack, RequestCounts::default(), mode);
        built.describe.finish(Measured::all(Instant(1)), &mut run);
        run
    }

    #[test]
    fn nodes_csv_names_declared_counters_of_all_nodes_and_tables_have_files_of_their_own() {
        let workload = Workload {
            path: "nothing".into(),
            kind: WorkloadKind::Synthetic,
            requests: 0,
            sha256: None,
            format: None,
            skipped_lines: Default::default(),
            repeat: 1,
            new_blocks: false,
            captured_response_ms: None,
            time_inversions: 0,
            combination: None,
        };
        let mut report = Report::new(1, workload);
        report.runs = ready_made().map(idle_run).collect();
        let files = report.to_csv();
        let nodes = files.iter().find(|(name, _)| name == "nodes.csv").expect("a file");
        let mut rows = 0;
        for row in nodes.1.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let &[_, node, counter, unit, _] = &cells[..] else { panic!("{row}") };
            let known = declared(counter).unwrap_or_else(|| panic!("{node} counts {counter}"));
            assert_eq!(known.unit.name(), unit, "{row}");
            rows += 1;
        }
        let of_runs = report.runs.iter().flat_map(|run| run.nodes.values());
        assert_eq!(rows, of_runs.map(|node| node.len()).sum::<usize>());
        let kinds = crate::kinds();
        let of_kinds: Vec<String> = kinds.iter().flat_map(|kind| kind.table_files()).collect();
        let is_fixed = |name: &String| REPORT_FILES.contains(&name.as_str());
        assert!(!of_kinds.iter().any(is_fixed), "{of_kinds:?}");
        assert!(files.iter().all(|(name, _)| is_fixed(name) || of_kinds.contains(name)));
        assert!(files.iter().any(|(name, _)| name == "disk_areas.csv"));
    }

    #[test]
    fn a_store_of_copies_is_as_long_as_the_last_segment_that_is_rewritten() {
        const SEGMENT: u64 = 512;
        for name in ["hwsr", "s-block"] {
            let config = StackConfig::load(name, &[]).expect("a ready-made stack");
            let options = BuildOptions {
                size_bytes: Some((40 * SEGMENT + 16) * BLOCK_BYTES),
                ..BuildOptions::simulate(1)
            };
            let plan = Plan::new(&config, &options).expect("a plan");
            let designed = plan.design_all(None, None, ContentKind::Counted).expect("a stack");
            let copied = designed.describe.blocks_of("cache").expect("a node");
            assert!(copied.0 >= 41 * SEGMENT && plan.blocks().0 == 40 * SEGMENT + 16, "{name}");
        }
    }

    #[test]
    fn the_kinds_that_count_something_are_those_that_its_group_names() {
        let mut seen = vec![JOURNAL];
        let set = ["translation.in_place=1GiB", "translation.clean_to=log"];
        let set = set.map(|text| Setting::parse(text).expect("a setting"));
        let others = [built_with("smr-only", &set)];
        for (config, built) in ready_made().map(built).chain(others) {
            for (node, described) in config.node.iter().zip(&built.describe.nodes) {
                let table = toml::Table::try_from(node).expect("a table");
                let kind = table["kind"].as_str().expect("a kind");
                let groups = described.facts.reported().groups();
                let others = described.facts.reported().others();
                let of_others = others.iter().map(|(counter, _)| {
                    let has = GROUPS.iter().find(|group| group.counters.contains(counter));
                    *has.expect("a group")
                });
                for group in groups.into_iter().chain(of_others) {
                    assert!(group.of.contains(&format!("`{kind}`")), "{kind}: {group:?}");
                    seen.push(group);
                }
            }
        }
        let unseen = GROUPS.iter().filter(|group| !seen.contains(group));
        let unseen: Vec<&str> = unseen.map(|group| group.of).collect();
        assert!(unseen.is_empty(), "{unseen:?}");
    }
}
