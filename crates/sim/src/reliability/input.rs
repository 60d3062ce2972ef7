//! The file that says what is to be computed.

use super::layout::{Kind, Layout};
use imbrex_drives::quantity::Size;
use imbrex_drives::toml_error::{from_toml, read_text};
use imbrex_report::label;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Hours of a year.
pub const YEAR_H: f64 = 8760.0;
/// Runs at most.
const RUNS_MAX: u64 = 1_000_000_000;
/// Disks of a layout at most.
const DISKS_MAX: u32 = 1000;

/// Why nothing can be computed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReliabilityError(pub String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    disk: DiskTable,
    repair: RepairTable,
    scrub: Option<ScrubTable>,
    correlated: Option<CorrelatedTable>,
    layout: LayoutTable,
    years: Option<f64>,
    runs: Option<u64>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskTable {
    capacity: Size,
    afr: Option<f64>,
    mttf_h: Option<f64>,
    shape: Option<f64>,
    read_error_per_bit: Option<f64>,
    read_per_year: Option<Size>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepairTable {
    mean_h: Option<f64>,
    report: Option<String>,
    distribution: Option<Distribution>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Distribution {
    Exponential,
    Measured,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScrubTable {
    every_h: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrelatedTable {
    share: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutTable {
    kind: Kind,
    homes: u32,
    c: Option<u32>,
    log: Option<Size>,
}

/// A repair, and where its length is from.
#[derive(Clone, PartialEq, Debug)]
pub struct RepairCase {
    /// Its name.
    pub name: String,
    /// Its mean length in hours.
    pub mean_h: f64,
    /// It always takes so long; exponential otherwise.
    pub is_measured: bool,
}

/// What is to be computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// The disks.
    pub layout: Layout,
    /// Bytes of one.
    pub capacity_bytes: f64,
    /// How long one lives in the mean, in hours.
    pub mttf_h: f64,
    /// The shape of its life.
    pub shape: f64,
    /// Bits that cannot be read, of each that is.
    pub read_error_per_bit: f64,
    /// Hours between two scrubs, and bits that are read of a disk in an hour.
    pub scrub: Option<(f64, f64)>,
    /// The repairs.
    pub repairs: Vec<RepairCase>,
    /// How many failures take each other disk of their group along.
    pub correlated: f64,
    /// Years for which the probability of a loss is asked.
    pub years: f64,
    /// Runs that are drawn.
    pub runs: u64,
    /// What they are drawn from.
    pub seed: u64,
}

/// A number that is to lie in a range.
fn checked(
    name: &str,
    value: f64,
    accepted: &str,
    accepts: impl Fn(f64) -> bool,
) -> Result<f64, String> {
    match value.is_finite() && accepts(value) {
        true => Ok(value),
        false => Err(format!("{name} = {value}; accepted: {accepted}")),
    }
}

fn hours(name: &str, value: f64) -> Result<f64, String> {
    checked(name, value, "hours, 0.01 to 1e12", |it| (0.01..=1e12).contains(&it))
}

impl Input {
    /// Reads a file. A report that it names lies beside it.
    ///
    /// # Errors
    /// When the file or the report cannot be read, or says what cannot be.
    pub fn read(path: &Path) -> Result<Input, ReliabilityError> {
        let file = path.display().to_string();
        let text = read_text(path).map_err(|error| ReliabilityError(format!("{file}: {error}")))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Input::parse(&file, &text, folder)
    }

    /// The same of a text that came from `file`; the report that it names is in `folder`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Input, ReliabilityError> {
        let parsed: StudyFile =
            from_toml(file, text).map_err(|error| ReliabilityError(error.to_string()))?;
        parsed.check(folder).map_err(|words| ReliabilityError(format!("{file}: {words}")))
    }

    /// With what probability the rebuild of a disk finds something that cannot be read.
    ///
    /// Without scrubs each bit fails as it is read. With them an error lies there from when it arose, at the rate of the bits
    /// that are read of a disk, until the next scrub: half the time between two, in the mean (after Elerath and Pecht, DSN 2007).
    pub fn read_error(&self, disk: usize) -> f64 {
        let capacities = self.layout.read_in_rebuild(disk);
        match self.scrub {
            None => {
                super::closed::read_error(self.read_error_per_bit, capacities * self.capacity_bytes)
            }
            Some((every_h, bits_per_h)) => {
                let of_disk = self.read_error_per_bit * bits_per_h * every_h / 2.0;
                -libm::expm1(-of_disk * capacities)
            }
        }
    }
}

impl StudyFile {
    fn check(self, folder: &Path) -> Result<Input, String> {
        let share = |it: f64| (0.0..1.0).contains(&it);
        let mttf_h = match (self.disk.afr, self.disk.mttf_h) {
            (Some(afr), None) => {
                let within = |it: f64| it > 0.0 && it < 1.0;
                let afr = checked(
                    "[disk] afr",
                    afr,
                    "the share that fails in a year, above 0 and below 1",
                    within,
                )?;
                -YEAR_H / libm::log1p(-afr)
            }
            (None, Some(mttf_h)) => hours("[disk] mttf_h", mttf_h)?,
            _ => return Err("[disk]: accepted: one of `afr` and `mttf_h`".into()),
        };
        let shape = checked("[disk] shape", self.disk.shape.unwrap_or(1.0), "0.2 to 10", |it| {
            (0.2..=10.0).contains(&it)
        })?;
        let read_error_per_bit = checked(
            "[disk] read_error_per_bit",
            self.disk.read_error_per_bit.unwrap_or(0.0),
            "0 or more and below 1, 1e-14 or 1e-15 on data sheets",
            share,
        )?;
        if self.disk.capacity.bytes() == 0 {
            return Err("[disk] capacity = \"0\"; accepted: a size above 0".into());
        }
        let scrub = match self.scrub {
            None if self.disk.read_per_year.is_some() => {
                return Err(
                    "[disk] read_per_year says how fast errors arise between scrubs; accepted: with [scrub]"
                        .into(),
                );
            }
            None => None,
            Some(scrub) => {
                let every_h = hours("[scrub] every_h", scrub.every_h)?;
                // What the data sheets of archive drives allow in a year.
                let year = self.disk.read_per_year.map_or(180e12, |size| size.bytes() as f64);
                Some((every_h, year * 8.0 / YEAR_H))
            }
        };
        let correlated = self.correlated.map_or(0.0, |it| it.share);
        let correlated =
            checked("[correlated] share", correlated, "0 to 1", |it| (0.0..=1.0).contains(&it))?;
        let years =
            checked("years", self.years.unwrap_or(5.0), "above 0 and at most 1000", |it| {
                it > 0.0 && it <= 1000.0
            })?;
        let runs = self.runs.unwrap_or(20_000);
        if !(1..=RUNS_MAX).contains(&runs) {
            return Err(format!("runs = {runs}; accepted: 1 to {RUNS_MAX}"));
        }
        let capacity_bytes = self.disk.capacity.bytes() as f64;
        Ok(Input {
            layout: self.layout.check(capacity_bytes)?,
            capacity_bytes,
            mttf_h,
            shape,
            read_error_per_bit,
            scrub,
            repairs: self.repair.check(folder)?,
            correlated,
            years,
            runs,
            seed: self.seed.unwrap_or(1),
        })
    }
}

impl LayoutTable {
    fn check(&self, capacity_bytes: f64) -> Result<Layout, String> {
        let word = self.kind.word();
        let least = if self.kind == Kind::Raid1 { 2 } else { 1 };
        if !(least..=100).contains(&self.homes) {
            let homes = self.homes;
            return Err(format!("[layout] homes = {homes}; accepted of {word}: {least} to 100"));
        }
        let arrays = match (self.kind, self.c) {
            (Kind::Chain, None) => {
                return Err(
                    "[layout] kind = \"chain\" needs `c`, how many arrays share a data disk".into(),
                );
            }
            (Kind::Chain, Some(c)) if !(1..=100).contains(&c) => {
                return Err(format!("[layout] c = {c}; accepted: 1 to 100"));
            }
            (Kind::Chain, Some(c)) => c,
            (_, Some(c)) => {
                return Err(format!("[layout] c = {c} is about a chain, and kind is \"{word}\""));
            }
            (_, None) => 1,
        };
        let log_share = match (self.kind, self.log) {
            (Kind::SplitDedicated, None) => {
                return Err(
                    "[layout] kind = \"split-dedicated\" needs `log`, the bytes of logs on the dedicated disk".into(),
                );
            }
            (Kind::SplitDedicated, Some(log)) if log.bytes() as f64 > capacity_bytes => {
                return Err(format!(
                    "[layout] log = \"{log}\"; accepted: at most the capacity of a disk"
                ));
            }
            (Kind::SplitDedicated, Some(log)) => log.bytes() as f64 / capacity_bytes,
            (_, Some(log)) => {
                return Err(format!(
                    "[layout] log = \"{log}\" is about a dedicated disk, and kind is \"{word}\""
                ));
            }
            (_, None) => 0.0,
        };
        let layout = Layout { kind: self.kind, homes: self.homes, arrays, log_share };
        match layout.disks() {
            disks if disks <= DISKS_MAX => Ok(layout),
            disks => Err(format!("[layout] has {disks} disks; accepted: at most {DISKS_MAX}")),
        }
    }
}

impl RepairTable {
    fn check(&self, folder: &Path) -> Result<Vec<RepairCase>, String> {
        let is_measured = self.distribution == Some(Distribution::Measured);
        match (self.mean_h, &self.report) {
            (Some(_), None) if is_measured => Err(
                "[repair] distribution = \"measured\" takes what was measured; accepted: with `report`".into(),
            ),
            (Some(mean_h), None) => {
                let mean_h = hours("[repair] mean_h", mean_h)?;
                Ok(vec![RepairCase { name: format!("{mean_h} h"), mean_h, is_measured }])
            }
            (None, Some(report)) => {
                let path = folder.join(report);
                let wrong = |words: &dyn std::fmt::Display| {
                    format!("[repair] report = \"{report}\": {words}")
                };
                let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
                let reports = Reports::parse(&text).map_err(|words| wrong(&words))?;
                let cases = reports.rebuilds(is_measured);
                match cases.is_empty() {
                    true => Err(wrong(
                        &"no run of it has a rebuild that has ended; accepted: a report of an array that lost a \
                          disk and has it again",
                    )),
                    false => Ok(cases),
                }
            }
            _ => Err("[repair]: accepted: one of `mean_h` and `report`".into()),
        }
    }
}

/// What is read of the JSON of `compare`, `run` and `reproduce`.
struct Reports(Vec<MeasuredReport>);

#[derive(Deserialize)]
struct MeasuredReport {
    workload: MeasuredWorkload,
    runs: Vec<MeasuredRun>,
}

#[derive(Deserialize)]
struct MeasuredWorkload {
    path: String,
}

#[derive(Deserialize)]
struct MeasuredRun {
    system: String,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    #[serde(default)]
    phases: BTreeMap<String, MeasuredPhase>,
    #[serde(default)]
    nodes: BTreeMap<String, BTreeMap<String, Value>>,
}

impl MeasuredRun {
    /// No array lacks a member at its end.
    fn is_whole(&self) -> bool {
        let lacks = |node: &BTreeMap<String, Value>| {
            ["missing_members", "rebuilding_members"].iter().any(|gauge| {
                node.get(*gauge).and_then(Value::as_u64).is_some_and(|members| members > 0)
            })
        };
        !self.nodes.values().any(lacks)
    }
}

#[derive(Deserialize)]
struct MeasuredPhase {
    total_s: f64,
    requests: u64,
}

impl Reports {
    fn parse(text: &str) -> Result<Reports, String> {
        let not_one = |error: serde_json::Error| {
            format!(
                "{error}; accepted: report.json of `compare` or `run`, or what `--json` has printed"
            )
        };
        let mut value: Value = serde_json::from_str(text).map_err(not_one)?;
        let all = match value.get_mut("reports") {
            Some(reports) => reports.take(),
            None => Value::Array(vec![value]),
        };
        Ok(Reports(serde_json::from_value(all).map_err(not_one)?))
    }

    /// The rebuilds that have ended, each as a case, named so that one sees which was under load.
    fn rebuilds(&self, is_measured: bool) -> Vec<RepairCase> {
        let runs =
            self.0.iter().flat_map(|report| report.runs.iter().map(move |run| (report, run)));
        let case = |(report, run): (&MeasuredReport, &MeasuredRun)| {
            let rebuilding = run.phases.get("rebuilding").filter(|_| run.is_whole())?;
            let mean_h = rebuilding.total_s / 3600.0;
            let load = match rebuilding.requests {
                0 => "nothing else to do".to_owned(),
                requests => {
                    let per_s = requests as f64 / rebuilding.total_s;
                    format!("{per_s:.3} requests a second meanwhile")
                }
            };
            let name = format!(
                "{} on {}: {mean_h:.2} h, {load}",
                label(&run.system, &run.parameters),
                report.workload.path
            );
            (mean_h > 0.0).then_some(RepairCase { name, mean_h, is_measured })
        };
        runs.filter_map(case).collect()
    }
}
