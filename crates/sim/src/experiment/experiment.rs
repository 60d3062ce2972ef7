//! An experiment as its TOML file states it.

use super::closed_form::ClosedForm;
use super::events::EventConfig;
use super::heads::HeadsConfig;
use super::kept::Kept;
use super::known::Known;
use super::movement_analysis::MovementAnalysis;
use super::plot::Plot;
use super::rounds::ROUNDS_MAX;
use super::stated::Stated;
use super::warm_up::WarmUp;
use super::workload::Workload;
use crate::replay::{Fit, Placement, ReplayOptions, STREAMS_MAX};
use imbrex_drives::Bands;
use imbrex_drives::quantity::{Size, SizeOrShare};
use imbrex_drives::toml_error::{self, read_text};
use imbrex_report::{Dependencies, Due, ReplayMode};
use imbrex_stack::{BroughtPolicies, ConfigError, NodeConfig, Setting, read_nodes};
use imbrex_traces::combine::Combination;
use imbrex_traces::synthetic::PATH_PREFIX;
use imbrex_traces::{BlockRule, ReadOptions};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Combinations of values of a sweep at most: days of runs, not a mistake in a list of values.
pub const SWEEP_POINTS_MAX: usize = 10_000;

/// By how much more a quick look divides recipes that state a scale.
pub const QUICK_DIVISOR: f64 = 8.0;

/// Requests of any other load in a quick look at most.
pub const QUICK_REQUESTS: u64 = 100_000;

/// Workloads, systems and settings to be run together, and what a paper states of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// Name of its own stack if it has one; that of the experiment when absent.
    pub stack: Option<String>,
    /// One line for people.
    pub title: String,
    /// Why results may differ from what is stated.
    #[serde(default)]
    pub differs: String,
    /// Root seed.
    #[serde(default = "seed_default")]
    pub seed: u64,
    /// Size of the device of every stack, instead of what the stack or its drive says.
    pub size: Option<Size>,
    /// Stacks: names of ready-made ones, or paths of TOML files.
    #[serde(default)]
    pub systems: Vec<String>,
    /// A stack of the experiment's own.
    #[serde(skip)]
    pub node: Vec<NodeConfig>,
    /// The same, as it is written.
    #[serde(default, rename = "node")]
    node_tables: Vec<toml::Table>,
    /// What is looked at in the traces themselves, instead of running stacks on them.
    pub analysis: Option<Analysis>,
    /// A closed form that is computed, instead of running stacks; its parameters are those of `sweep`.
    pub closed_form: Option<ClosedForm>,
    /// One workload, or a list; none with a closed form.
    #[serde(default, deserialize_with = "one_or_more")]
    pub workload: Vec<WorkloadConfig>,
    /// Keys of nodes, set in every stack that has the node.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// Keys of nodes (or `system`) and the values each takes; every combination is run.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
    /// The model by which movement of the disks is counted, and its settings.
    pub movement: Option<toml::Table>,
    /// A time in which it is told what went to the disks.
    pub heads: Option<HeadsConfig>,
    /// Gauges to record over time, as `NODE.GAUGE`, in every stack that has the node.
    #[serde(default)]
    pub series: Vec<String>,
    /// Commands to nodes while the workloads are replayed.
    #[serde(default)]
    pub event: Vec<EventConfig>,
    /// What a paper states.
    #[serde(default)]
    pub stated: Vec<Stated>,
    /// How its figures are drawn.
    #[serde(default)]
    pub plot: Vec<Plot>,
    /// The policies that its stacks may name beside those of Imbrex.
    #[serde(skip)]
    pub brought: BroughtPolicies,
    /// Whether its loads were divided by more than the file says.
    #[serde(skip)]
    pub(super) is_divided: bool,
    /// Whether this is a quick look.
    #[serde(skip)]
    is_quick: bool,
    /// Folder that relative paths start from.
    #[serde(skip)]
    folder: PathBuf,
    /// The file, for errors.
    #[serde(skip)]
    pub(super) file: String,
}

fn seed_default() -> u64 {
    1
}

/// What is looked at in a trace itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Analysis {
    /// Counts, sizes and footprints, as `trace info` finds them.
    Characteristics,
    /// The write amplification of writing straight to a drive-managed disk.
    DirectWrite(DirectWriteConfig),
    /// How far the disk models of Le's thesis are moved.
    Movement(MovementAnalysis),
}

/// The disk of the direct-write estimate.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectWriteConfig {
    /// How the addresses are cut into bands.
    pub bands: Bands,
    /// Room of the log.
    pub persistent_cache: SizeOrShare,
}

/// A workload and the way it is replayed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConfig {
    /// Short name for `[[stated]]`; what follows `synthetic:`, or the name of the file, when absent.
    pub name: Option<String>,
    /// A trace file, relative to the experiment file, or `synthetic:RECIPE`; empty with `combine`.
    #[serde(default)]
    pub path: String,
    /// Several traces made one, instead of `path`.
    pub combine: Option<Combination>,
    /// So many workloads with seeds from 1 on, each with its seed behind its name.
    pub seeds: Option<u32>,
    /// Divides requests and footprint of a recipe. A recipe without this key is never scaled.
    pub scale: Option<f64>,
    /// Trace format, when it is not recognised.
    pub format: Option<String>,
    /// Columns of a CSV or Parquet trace.
    pub columns: Option<String>,
    /// Stop after this many records.
    pub limit: Option<u64>,
    /// How many times over it is replayed, each round a mean gap behind the last request of the one before;
    /// once when absent.
    pub repeat: Option<u32>,
    /// Each round is on other blocks, those behind the highest of the one before; `fit` is then `wrap`.
    #[serde(default)]
    pub new_blocks: bool,
    /// A first part that is in no figure: a count of requests, a share such as "25%", or "until-full".
    pub warm_up: Option<WarmUp>,
    /// Requests outstanding at most; 1 when absent.
    pub queue_depth: Option<u32>,
    /// Issue each request at its time stamp, this many times faster.
    pub open_loop_speed: Option<f64>,
    /// Issue in this many streams.
    pub streams: Option<u32>,
    /// When a request of a stream is due; at its time stamp when absent.
    pub due: Option<Due>,
    /// Which stream a request joins; one after the other when absent.
    pub dependencies: Option<Dependencies>,
    /// Windows of the span at the top of the stack: stream k has window k modulo their number as its
    /// device; without streams request k has.
    #[serde(default)]
    pub windows: Vec<String>,
    /// Whether a trace of one device is cut into the windows of a stack that has one for each device of a trace.
    #[serde(default)]
    pub cut_into_windows: bool,
    /// What to do with addresses beyond the device.
    pub fit: Option<FitConfig>,
    /// Which blocks a request has.
    #[serde(default)]
    pub blocks: BlockRule,
    /// Whether its reads are left out, as they are for all stacks of an experiment of which one takes no reads.
    #[serde(default)]
    pub drop_reads: bool,
}

/// What to do with addresses beyond the device.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitConfig {
    /// Take them modulo the size of the device.
    Wrap,
    /// Squeeze the whole trace into the device.
    Scale,
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<WorkloadConfig>, D::Error> {
    struct OneOrMore;
    impl<'de> serde::de::Visitor<'de> for OneOrMore {
        type Value = Vec<WorkloadConfig>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a table [workload] or tables [[workload]]")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            WorkloadConfig::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }
    from.deserialize_any(OneOrMore)
}

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML or says something impossible.
    pub fn open(path: &Path) -> Result<Experiment, ConfigError> {
        let file = path.display().to_string();
        let text =
            read_text(path).map_err(|error| ConfigError::Read { path: file.clone(), error })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Experiment::parse(&file, &text, folder)
    }

    /// The experiment of a text that came from `file`; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// When the text is not TOML or says something impossible.
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Experiment, ConfigError> {
        let mut experiment: Experiment = toml_error::from_toml(file, text)?;
        let tables = std::mem::take(&mut experiment.node_tables);
        experiment.node = read_nodes(file, text, tables)?;
        experiment.folder = folder.to_path_buf();
        experiment.file = file.to_string();
        experiment.expand_seeds()?;
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), ConfigError> {
        match &self.closed_form {
            Some(form) => form.check(self)?,
            None => self.check_runs()?,
        }
        self.check_sweep()?;
        self.check_combined()?;
        for stated in &self.stated {
            stated.check(self)?;
        }
        for (at, plot) in self.plot.iter().enumerate() {
            plot.check(&self.known()).map_err(|words| {
                ConfigError::words(format!("{}: [[plot]] {}: {words}", self.file, at + 1))
            })?;
        }
        Ok(())
    }

    /// What its expressions may name.
    pub(super) fn known(&self) -> Known<'_> {
        let mut systems = self.system_names();
        let in_files = systems.iter().any(|name| name.ends_with(".toml"));
        if !self.node.is_empty() {
            systems.push(self.stack.as_ref().unwrap_or(&self.name).clone());
        }
        systems.extend(self.analysis.is_some().then(|| "trace".to_string()));
        systems.extend(self.closed_form.iter().map(|it| it.form.name().to_string()));
        Known {
            workloads: self.workload.iter().map(WorkloadConfig::name).collect(),
            sweep: &self.sweep,
            systems: (!in_files).then_some(systems),
        }
    }

    /// What is run, and on what.
    fn check_runs(&self) -> Result<(), ConfigError> {
        let wrong = |message: &str| Err(ConfigError::words(format!("{}: {message}", self.file)));
        if self.workload.is_empty() {
            return wrong("there is no [workload]");
        }
        let has_stacks =
            !self.systems.is_empty() || !self.node.is_empty() || self.sweep.contains_key("system");
        match (&self.analysis, has_stacks) {
            (None, false) => {
                return wrong(
                    "nothing to run; accepted: `systems`, [[node]], [analysis] or [closed_form]",
                );
            }
            (Some(_), true) => {
                return wrong(
                    "[analysis] looks at traces and runs no stack: leave out the systems",
                );
            }
            _ => {}
        }
        if self.stack.is_some() && self.node.is_empty() {
            return wrong(
                "`stack` names a stack of the experiment's own, and there is no [[node]]",
            );
        }
        if self.analysis.is_some() && !(self.set.is_empty() && self.sweep.is_empty()) {
            return wrong("[analysis] runs no stack: leave out [set] and [sweep]");
        }
        if self.analysis.is_some() && self.movement.is_some() {
            return wrong("[analysis] runs no stack: leave out [movement]");
        }
        if let Some(heads) = &self.heads {
            if self.analysis.is_some() {
                return wrong("[analysis] runs no stack: leave out [heads]");
            }
            heads.check().or_else(|words| wrong(&format!("[heads] {words}")))?;
        }
        if self.analysis.is_some() && !self.event.is_empty() {
            return wrong("[analysis] runs no stack: leave out [[event]]");
        }
        if !self.systems.is_empty() && self.sweep.contains_key("system") {
            return wrong("`systems` and a sweep of `system`: accepted: one of them");
        }
        for workload in &self.workload {
            if workload.warm_up.is_some() && self.analysis.is_some() {
                return wrong("[analysis] looks at all of a trace: leave out `warm_up`");
            }
            if matches!(workload.warm_up, Some(WarmUp::Share(_))) && workload.path == "-" {
                return wrong(
                    "warm_up is a share of the requests, and standard input (`-`) can be read once; accepted: \
                     a count or \"until-full\"",
                );
            }
            if workload.new_blocks {
                if workload.repeat.is_none_or(|repeat| repeat == 1) {
                    return wrong(
                        "new_blocks: there is one round; accepted: with `repeat` of 2 or more",
                    );
                }
                if matches!(workload.fit, Some(FitConfig::Scale)) {
                    return wrong(
                        "new_blocks with fit = \"scale\": accepted: fit = \"wrap\", which is meant without it",
                    );
                }
            }
            let Some(repeat) = workload.repeat else { continue };
            if !(1..=ROUNDS_MAX).contains(&repeat) {
                return wrong(&format!("repeat = {repeat}: accepted: 1 to {ROUNDS_MAX}"));
            }
            if repeat > 1 && self.analysis.is_some() {
                return wrong("[analysis] looks at traces once: leave out `repeat`");
            }
            if repeat > 1 && workload.path == "-" {
                return wrong("repeat with the path `-`: standard input can be read once");
            }
        }
        if self.workload.iter().any(|it| it.cut_into_windows && !it.windows.is_empty()) {
            return wrong("cut_into_windows and windows: accepted: one of them");
        }
        let mut names: Vec<String> = self.workload.iter().map(WorkloadConfig::name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(&format!("two workloads are named `{}`", pair[0]));
        }
        Ok(())
    }

    fn check_sweep(&self) -> Result<(), ConfigError> {
        let wrong = |message: &str| Err(ConfigError::words(format!("{}: {message}", self.file)));
        if let Some((key, _)) = self.sweep.iter().find(|(_, values)| values.is_empty()) {
            return wrong(&format!("[sweep] {key} has no value"));
        }
        let values = self.sweep.values().map(Vec::len);
        if values.fold(1, usize::saturating_mul) > SWEEP_POINTS_MAX {
            let message = "[sweep] has too many combinations of values; accepted: at most";
            return wrong(&format!("{message} {SWEEP_POINTS_MAX}"));
        }
        Ok(())
    }

    /// The path of a file that the experiment names.
    pub(super) fn path_of(&self, name: &str) -> String {
        match self.folder.as_os_str().is_empty() {
            true => name.to_string(),
            false => self.folder.join(name).display().to_string(),
        }
    }

    /// True when there are several workloads, a closed form counting as one.
    pub fn has_several_workloads(&self) -> bool {
        self.workload.len() + usize::from(self.closed_form.is_some()) > 1
    }

    /// True when a workload states a `scale`.
    pub fn is_scalable(&self) -> bool {
        self.workload.iter().any(|workload| workload.scale.is_some())
    }

    /// Divides requests and footprint of the scalable recipes by `scale` instead of what the file
    /// says.
    ///
    /// # Errors
    /// When no workload is scalable.
    pub fn rescale(&mut self, scale: f64) -> Result<(), ConfigError> {
        if !self.is_scalable() {
            return Err(ConfigError::words(format!(
                "{}: --scale {scale}: no workload has a `scale`: only recipes that state one are scaled",
                self.file
            )));
        }
        for workload in self.workload.iter_mut().filter(|w| w.scale.is_some()) {
            self.is_divided |= workload.scale.is_some_and(|before| before < scale);
            workload.scale = Some(scale);
        }
        Ok(())
    }

    /// Divides the loads of what is replayed, for a quick look: recipes that state a scale by
    /// [`QUICK_DIVISOR`] more, and of all others the first [`QUICK_REQUESTS`] requests are taken. Statements that
    /// need the full size are left out from then on.
    pub fn quicken(&mut self) {
        self.is_quick = true;
        self.is_divided = true;
        let is_replayed = self.analysis.is_none();
        for workload in &mut self.workload {
            match workload.scale {
                Some(scale) => workload.scale = Some(scale * QUICK_DIVISOR),
                None if is_replayed => {
                    let limit = workload.limit.unwrap_or(QUICK_REQUESTS);
                    workload.limit = Some(limit.min(QUICK_REQUESTS));
                }
                None => {}
            }
        }
    }

    /// The statements that are left out because they need the full size.
    pub fn left_out(&self) -> impl Iterator<Item = &Stated> {
        self.stated.iter().filter(|stated| self.leaves_out(stated))
    }

    /// Whether a statement is left out.
    pub(super) fn leaves_out(&self, stated: &Stated) -> bool {
        self.is_quick && stated.full_size
    }

    /// Settings of `[set]`, and of `more` after them.
    ///
    /// # Errors
    /// When a key is not one of a node.
    pub(super) fn settings(&self, more: &[Setting]) -> Result<Vec<Setting>, ConfigError> {
        let origin = format!("{}: [set]", self.file);
        let mut settings = self
            .set
            .iter()
            .map(|(path, value)| Setting::of(path, value.clone(), &origin))
            .collect::<Result<Vec<_>, _>>()?;
        settings.extend_from_slice(more);
        Ok(settings)
    }
}

impl WorkloadConfig {
    /// The name by which `[[stated]]` knows it.
    pub fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        if let Some(combine) = &self.combine {
            return combine.label();
        }
        match self.path.strip_prefix(PATH_PREFIX) {
            Some(recipe) => recipe.to_string(),
            None => Path::new(&self.path)
                .file_name()
                .map_or(self.path.clone(), |name| name.to_string_lossy().into_owned()),
        }
    }

    /// By how much requests and footprint are divided.
    pub fn factor(&self) -> f64 {
        self.scale.unwrap_or(1.0)
    }

    /// The workload, its path resolved and scaled.
    ///
    /// # Errors
    /// When the scale or the format is wrong.
    pub(super) fn workload(&self, of: &Experiment) -> Result<Workload, ConfigError> {
        let wrong = |message: String| ConfigError::words(format!("{}: {message}", of.file));
        let path = match (self.path.strip_prefix(PATH_PREFIX), self.scale) {
            (None, Some(scale)) => {
                return Err(wrong(format!(
                    "scale = {scale}: only a `synthetic:` workload can be scaled"
                )));
            }
            (None, None) if self.path == "-" => self.path.clone(),
            (None, None) => of.path_of(&self.path),
            (Some(recipe), scale) => {
                let is_file = recipe.ends_with(".toml");
                let recipe = if is_file { of.path_of(recipe) } else { recipe.to_string() };
                match scale {
                    None | Some(1.0) => format!("{PATH_PREFIX}{recipe}"),
                    Some(scale) => format!("{PATH_PREFIX}{recipe}/{scale}"),
                }
            }
        };
        let format = self.format.as_deref().map(str::parse).transpose();
        Ok(Workload {
            path,
            options: ReadOptions {
                format: format.map_err(wrong)?,
                columns: self.columns.clone(),
                sha256: true,
                ..ReadOptions::default()
            },
            limit: self.limit,
            repeat: self.repeat.unwrap_or(1),
            new_blocks: self.new_blocks,
            warm_up: self.warm_up,
            combined: None,
            kept: Kept::default(),
        })
    }

    /// The way it is replayed; `drop_reads` leaves the reads out.
    ///
    /// # Errors
    /// When the mode is impossible, or a first pass over a trace that is to be squeezed fails. Once `stop`
    /// is set what that pass finds means nothing.
    pub(super) fn replay(
        &self,
        of: &Experiment,
        workload: &Workload,
        drop_reads: bool,
        stop: &AtomicBool,
    ) -> Result<ReplayOptions, super::RunError> {
        let wrong = |message: &str| ConfigError::words(format!("{}: {message}", of.file));
        if self.due.is_some() && self.streams.is_none() {
            return Err(wrong(
                "due says when requests of streams are due; accepted: with `streams`",
            )
            .into());
        }
        if self.dependencies.is_some() && self.streams.is_none() {
            return Err(wrong(
                "dependencies says which stream a request joins; accepted: with `streams`",
            )
            .into());
        }
        let mode = match (self.queue_depth, self.open_loop_speed, self.streams) {
            (None, None, None) => ReplayMode::ClosedLoop { depth: 1 },
            (Some(0), None, None) => {
                return Err(wrong("queue_depth = 0; accepted: 1 or more").into());
            }
            (Some(depth), None, None) => ReplayMode::ClosedLoop { depth },
            (None, Some(speed), None) if speed > 0.0 && speed.is_finite() => {
                ReplayMode::OpenLoop { speed }
            }
            (None, Some(speed), None) => {
                let message = format!("open_loop_speed = {speed}; accepted: a number above 0");
                return Err(wrong(&message).into());
            }
            (None, None, Some(streams)) if !(1..=STREAMS_MAX).contains(&streams) => {
                let message = format!("streams = {streams}; accepted: 1 to {STREAMS_MAX}");
                return Err(wrong(&message).into());
            }
            (None, None, Some(streams)) => {
                let (due, dependencies) = (self.due, self.dependencies);
                ReplayMode::Streams {
                    streams,
                    due: due.unwrap_or_default(),
                    dependencies: dependencies.unwrap_or_default(),
                }
            }
            _ => {
                return Err(wrong(
                    "accepted: one of `queue_depth`, `open_loop_speed` and `streams`",
                )
                .into());
            }
        };
        let fit = match self.fit {
            None if self.new_blocks => Fit::Wrap,
            None => Fit::Refuse,
            Some(FitConfig::Wrap) => Fit::Wrap,
            Some(FitConfig::Scale) => Fit::Scale { span_bytes: workload.span_bytes_until(stop)? },
        };
        let placement = Placement { fit, blocks: self.blocks };
        let drop_reads = drop_reads || self.drop_reads;
        Ok(ReplayOptions { mode, limit: self.limit, drop_reads, placement })
    }
}
