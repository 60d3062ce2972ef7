//! Experiments that compute a closed form: `[closed_form]` says which, `[sweep]` its parameters.

use super::experiment::Experiment;
use super::sweep::{Point, points};
use crate::analysis::{array_forms as arrays_of, segment_forms as forms};
use crate::reliability::MeanTimes;
use imbrex_report::{FormPoint, FormTable};
use imbrex_stack::{ConfigError, Setting};
use serde::Deserialize;

/// A closed form that is computed instead of running stacks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Which.
    pub form: Form,
}

/// The closed forms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// How much more a disk holds with the segments of HWSR than with S-blocks (HWSR, section 3.2).
    HsRatio,
    /// S-blocks moved by a garbage collection (HWSR, Figure 6).
    Omega,
    /// The share of the disks of arrays that holds data (RAID 4SMR, equation 6.1).
    SpaceEfficiency,
    /// The size of a table with an entry for each unit of the disk, which HWSR does not need.
    TableSize,
    /// The mean time until arrays lose data by missing disks (RAID 4SMR, equation 6.7).
    MeanTimeToLoss,
}

/// A parameter of a form: its key, what is accepted in words, and whether a value is.
struct Parameter {
    key: &'static str,
    accepted: &'static str,
    accepts: fn(f64) -> bool,
}

const fn whole(key: &'static str) -> Parameter {
    Parameter {
        key,
        accepted: "a whole number, 1 to 1,000,000,000",
        accepts: |value| (1.0..=1e9).contains(&value) && value.fract() == 0.0,
    }
}

const fn small(key: &'static str) -> Parameter {
    Parameter {
        key,
        accepted: "a whole number, 1 to 100",
        accepts: |value| (1.0..=100.0).contains(&value) && value.fract() == 0.0,
    }
}

const fn rate(key: &'static str) -> Parameter {
    Parameter {
        key,
        accepted: "a number above 0, at most 1000",
        accepts: |value| value > 0.0 && value <= 1000.0,
    }
}

const SPARE: Parameter = Parameter {
    key: "spare",
    accepted: "a share, 0 or more and below 1",
    accepts: |value| (0.0..1.0).contains(&value),
};

impl Form {
    /// The name by which `[[stated]]` knows it.
    pub fn name(self) -> &'static str {
        match self {
            Form::HsRatio => "hs-ratio",
            Form::Omega => "omega",
            Form::SpaceEfficiency => "space-efficiency",
            Form::TableSize => "table-size",
            Form::MeanTimeToLoss => "mean-time-to-loss",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Form::HsRatio => "data on one disk, segments of HWSR over S-blocks",
            Form::Omega => "S-blocks moved by a garbage collection",
            Form::SpaceEfficiency => "share of the disks of arrays that holds data, in per cent",
            Form::TableSize => "size of a table with an entry for each unit",
            Form::MeanTimeToLoss => "hours until arrays lose data by missing disks",
        }
    }

    fn parameters(self) -> &'static [Parameter] {
        match self {
            Form::HsRatio => const { &[whole("region_tracks"), whole("kappa"), SPARE] },
            Form::Omega => const { &[whole("segments"), SPARE] },
            Form::SpaceEfficiency => const { &[whole("arrays"), whole("homes"), whole("disk_tb")] },
            Form::TableSize => {
                const { &[whole("capacity_gib"), whole("unit_bytes"), whole("entry_bytes")] }
            }
            Form::MeanTimeToLoss => {
                const { &[small("arrays"), small("homes"), rate("failure_per_h"), rate("repair_per_h")] }
            }
        }
    }

    /// The values at a point; `of` gives a parameter. The first one is drawn.
    fn values(self, of: &dyn Fn(&str) -> f64) -> Vec<(&'static str, Option<f64>)> {
        match self {
            Form::HsRatio => {
                let (region, kappa, spare) = (of("region_tracks"), of("kappa"), of("spare"));
                let segments = forms::tracks_used_by_segments(region, kappa);
                let s_blocks = forms::tracks_used_by_s_blocks(region, kappa);
                let extra = s_blocks * forms::slots_used_extra(spare);
                vec![
                    ("ratio", Some(forms::hs_ratio(region, kappa, spare))),
                    ("ratio_extra_slots", Some(segments / extra)),
                    ("used_by_segments", Some(segments)),
                    ("used_by_s_blocks", Some(s_blocks * forms::slots_used_inside(spare))),
                    ("used_by_s_blocks_extra_slots", Some(extra)),
                ]
            }
            Form::Omega => {
                let (segments, spare) = (of("segments"), of("spare"));
                let slots = forms::spare_slots(segments, spare);
                vec![
                    ("published", forms::moved_as_published(spare)),
                    ("one_hot", Some(forms::moved_when_one_is_hot(segments, slots))),
                    ("uniform", Some(forms::moved_when_uniform(segments, slots))),
                ]
            }
            Form::SpaceEfficiency => {
                let (arrays, homes, disk_tb) = (of("arrays"), of("homes"), of("disk_tb"));
                let disks = arrays_of::disks(arrays, homes);
                let shares = [
                    arrays_of::used_at_least(arrays, homes),
                    arrays_of::used_at_most(arrays, homes),
                    arrays_of::used_by_live(arrays, homes),
                ];
                let [low, high, live] = shares.map(|share| Some(100.0 * share));
                let [low_tb, high_tb, live_tb] = shares.map(|share| Some(share * disks * disk_tb));
                vec![
                    ("low", low),
                    ("high", high),
                    ("live", live),
                    ("low_tb", low_tb),
                    ("high_tb", high_tb),
                    ("live_tb", live_tb),
                    ("disks", Some(disks)),
                ]
            }
            Form::TableSize => {
                let gib = f64::from(1u32 << 30);
                let capacity = of("capacity_gib") * gib;
                let bytes = forms::table_bytes(capacity, of("unit_bytes"), of("entry_bytes"));
                vec![("gib", Some(bytes / gib)), ("bytes", Some(bytes))]
            }
            Form::MeanTimeToLoss => {
                let [failure, repair] = [of("failure_per_h"), of("repair_per_h")];
                let times = MeanTimes::of(of("arrays") as u32, of("homes") as u32, failure, repair);
                vec![
                    ("chain", Some(times.chain)),
                    ("chain_first_order", times.chain_first_order),
                    ("raid4smr", times.raid4smr),
                    ("raid4", times.raid4),
                ]
            }
        }
    }
}

/// A swept value as a number.
fn number(value: &toml::Value) -> Option<f64> {
    match value {
        toml::Value::Integer(value) => Some(*value as f64),
        toml::Value::Float(value) => Some(*value),
        _ => None,
    }
}

impl ClosedForm {
    /// Finds what is wrong with the parameters of an experiment before anything is computed.
    pub(super) fn check(&self, of: &Experiment) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError::words(format!("{}: {message}", of.file)));
        let others = [
            ("[[workload]]", !of.workload.is_empty()),
            ("`systems`", !of.systems.is_empty()),
            ("[[node]]", !of.node.is_empty()),
            ("`stack`", of.stack.is_some()),
            ("[analysis]", of.analysis.is_some()),
            ("[set]", !of.set.is_empty()),
            ("`series`", !of.series.is_empty()),
            ("[[event]]", !of.event.is_empty()),
            ("[movement]", of.movement.is_some()),
            ("[heads]", of.heads.is_some()),
            ("`size`", of.size.is_some()),
        ];
        if let Some((other, _)) = others.iter().find(|(_, is_there)| *is_there) {
            return wrong(format!("[closed_form] runs nothing: leave out {other}"));
        }
        let (name, parameters) = (self.form.name(), self.form.parameters());
        let keys: Vec<&str> = parameters.iter().map(|parameter| parameter.key).collect();
        let accepted = format!("form \"{name}\" takes {}", keys.join(", "));
        if let Some(missing) = keys.iter().find(|key| !of.sweep.contains_key(**key)) {
            return wrong(format!("[sweep] has no `{missing}`; accepted: {accepted}"));
        }
        for (key, values) in &of.sweep {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.key == key) else {
                return wrong(format!("[sweep] unknown key `{key}`; accepted: {accepted}"));
            };
            let is_good = |value: &&toml::Value| number(value).is_some_and(parameter.accepts);
            if let Some(bad) = values.iter().find(|value| !is_good(value)) {
                let accepted = parameter.accepted;
                return wrong(format!("[sweep] {key} = {bad}; accepted: {accepted}"));
            }
        }
        Ok(())
    }

    /// The values at every combination of the parameters.
    ///
    /// # Errors
    /// When settings of nodes are given, of which there are none.
    pub(super) fn table(
        &self,
        of: &Experiment,
        settings: &[Setting],
    ) -> Result<FormTable, ConfigError> {
        if let Some(Setting { origin, node, key, .. }) = settings.first() {
            let file = &of.file;
            return Err(ConfigError::words(format!(
                "{origin} {node}.{key}: {file} has a [closed_form] and no nodes; accepted: no settings"
            )));
        }
        let point = |point: &Point| {
            let value = |key: &str| point.get(key).and_then(number).unwrap_or(f64::NAN);
            FormPoint {
                parameters: point.keys().map(|key| (key.clone(), value(key))).collect(),
                values: self.form.values(&value),
            }
        };
        Ok(FormTable {
            form: self.form.name(),
            title: self.form.describe(),
            points: points(&of.sweep).iter().map(point).collect(),
        })
    }
}
