//! The queue of a disk on the host's side.

use super::ports::{PortNodes, one};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, NodeConfig, Offer, OnDisk, Part, Planned,
    Reported, TimeKey, World, wrong,
};
use crate::config::ConfigError;
use imbrex_core::counters::{Group, SCHEDULER};
use imbrex_core::extent::Extent;
use imbrex_core::scheduler::{
    AreaCLook, Deadline, DispatchLog, Policy, Quota, Scheduler, SchedulerSettings,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Lba};
use imbrex_core::words::Words;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, Word};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::rc::Rc;

/// Requests of one area that are served while the other one waits, where a stack does not say it.
const QUOTA: u64 = 32;
/// How long a request waits that no older one blocks, where a stack does not say it.
const MAX_WAIT_MS: u64 = 1000;

keys! {
    /// The queue of a disk on the host's side.
    pub struct SchedulerConfig {
        /// Name of the node.
        name: String => "any";
        /// The disk.
        below: String => "a disk";
        /// Which of the requests that wait goes to the disk next.
        policy: PolicyKey => r#"`"fcfs"`, `"sstf"`, `"look"`, `"c-look"`, `"deadline"`, `"area-c-look"`"#;
        /// With `area-c-look`: what is served of one area while something waits in the other one.
        #[serde(skip_serializing_if = "Option::is_none")]
        quota: Option<QuotaKey> => r#"1 or more, in bytes a size too; `"waiting"`: as many requests as waited there when the head came; or `"none"`"#, "32";
        /// What a quota counts.
        #[serde(skip_serializing_if = "Option::is_none")]
        quota_unit: Option<Word<QuotaUnit>> => AnyWord, r#"`"requests"`"#;
        /// With `area-c-look`: where the second area of the disk begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        boundary: Option<Size> => "a size between 4 KiB and that of the disk", "where the last slice of the disk begins; one area where it is not cut";
        /// A request that has waited for so many milliseconds, and that no older one blocks, goes before all younger
        /// ones. It is no key of `fcfs`, and `deadline` has limits of its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_wait_ms: Option<MaxWait> => r#"1 to 3,600,000, or `"none"`"#, "1000";
        /// A request of a cleaning goes only while no other could, unless it has waited for so many milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        clean_wait_ms: Option<CleanWait> => r#"1 to 3,600,000, or `"none"`: it goes as any other"#, r#"`"none"`"#;
        /// Requests that the disk has at a time, flushes apart.
        device_depth: u64 = 1 => 1..=1024;
    }
}

imbrex_core::words! {
    /// What a quota counts.
    pub enum QuotaUnit {
        /// Requests.
        Requests = "requests",
        /// Their bytes.
        Bytes = "bytes",
    }
}

imbrex_core::words! {
    /// Which request goes next.
    pub enum PolicyName {
        /// The oldest.
        Fcfs = "fcfs",
        /// The nearest.
        Sstf = "sstf",
        /// The next in the direction of the head.
        Look = "look",
        /// The next upwards.
        CLook = "c-look",
        /// Sorted batches with limits.
        Deadline = "deadline",
        /// C-LOOK in one of two areas.
        AreaCLook = "area-c-look",
    }
}

/// A policy by its name, where names of policies that are none here say why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "Word<PolicyName>")]
pub struct PolicyKey(PolicyName);

impl TryFrom<String> for PolicyKey {
    type Error = String;

    fn try_from(word: String) -> Result<PolicyKey, String> {
        if let Some(name) = PolicyName::of_word(&word) {
            return Ok(PolicyKey(name));
        }
        let why = match &*word {
            "scan" => {
                "; it would choose as look does: the head need not go to the last block of the disk"
            }
            "c-scan" => {
                "; it would choose as c-look does: the head need not go to the last block of the disk"
            }
            "sptf" => {
                "; it belongs to a drive, which alone knows where its platters are (key scheduler of the disk)"
            }
            _ => "",
        };
        Err(format!("policy = \"{word}\"{why}; accepted: \"{}\"", PolicyName::WORDS.join("\", \"")))
    }
}

impl From<PolicyKey> for Word<PolicyName> {
    fn from(from: PolicyKey) -> Word<PolicyName> {
        Word(from.0)
    }
}

/// What is served of one area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum QuotaKey {
    /// So much.
    Count(u64),
    /// So many bytes.
    Size(Size),
    /// What is there.
    Waiting,
    /// All.
    None,
}

impl TryFrom<toml::Value> for QuotaKey {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<QuotaKey, String> {
        let size = |text: &str| text.parse::<Size>().ok().filter(|size| size.bytes() > 0);
        match (value.as_integer(), value.as_str()) {
            (Some(count @ 1..), _) => Ok(QuotaKey::Count(count as u64)),
            (_, Some("none")) => Ok(QuotaKey::None),
            (_, Some("waiting")) => Ok(QuotaKey::Waiting),
            (_, Some(text)) if let Some(size) = size(text) => Ok(QuotaKey::Size(size)),
            _ => Err(format!(
                "quota = {value}; accepted: 1 or more, in bytes a size too, \"waiting\" or \"none\""
            )),
        }
    }
}

impl From<QuotaKey> for toml::Value {
    fn from(from: QuotaKey) -> toml::Value {
        match from {
            QuotaKey::Count(count) => toml::Value::Integer(count.min(i64::MAX as u64) as i64),
            QuotaKey::Size(size) => size.to_string().into(),
            QuotaKey::Waiting => "waiting".into(),
            QuotaKey::None => "none".into(),
        }
    }
}

/// How long a request waits at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// So many milliseconds.
    Ms(u64),
    /// For as long as the policy has it.
    None,
}

impl Wait {
    fn read(key: &str, value: &toml::Value) -> Result<Wait, String> {
        match (value.as_integer(), value.as_str()) {
            (Some(ms @ 1..=3_600_000), _) => Ok(Wait::Ms(ms as u64)),
            (_, Some("none")) => Ok(Wait::None),
            _ => Err(format!("{key} = {value}; accepted: 1 to 3600000, or \"none\"")),
        }
    }

    fn limit(self) -> Option<Duration> {
        match self {
            Wait::Ms(ms) => Some(Duration::from_ms(ms)),
            Wait::None => None,
        }
    }
}

impl From<Wait> for toml::Value {
    fn from(from: Wait) -> toml::Value {
        match from {
            Wait::Ms(ms) => toml::Value::Integer(ms as i64),
            Wait::None => "none".into(),
        }
    }
}

/// How long any request waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub struct MaxWait(Wait);

impl TryFrom<toml::Value> for MaxWait {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<MaxWait, String> {
        Wait::read("max_wait_ms", &value).map(MaxWait)
    }
}

impl From<MaxWait> for toml::Value {
    fn from(from: MaxWait) -> toml::Value {
        from.0.into()
    }
}

/// How long a request of a cleaning waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub struct CleanWait(Wait);

impl TryFrom<toml::Value> for CleanWait {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<CleanWait, String> {
        Wait::read("clean_wait_ms", &value).map(CleanWait)
    }
}

impl From<CleanWait> for toml::Value {
    fn from(from: CleanWait) -> toml::Value {
        from.0.into()
    }
}

impl SchedulerConfig {
    fn has_areas(&self) -> bool {
        self.policy.0 == PolicyName::AreaCLook
    }

    fn has_max_wait(&self) -> bool {
        !matches!(self.policy.0, PolicyName::Fcfs | PolicyName::Deadline)
    }

    /// Finds a key that does nothing under the policy.
    fn check_keys(&self) -> Result<(), ConfigError> {
        let policy = self.policy.0.word();
        let of_areas = [
            ("quota", self.quota.is_some()),
            ("quota_unit", self.quota_unit.is_some()),
            ("boundary", self.boundary.is_some()),
        ];
        if let Some((key, _)) = of_areas.iter().find(|(_, is_there)| *is_there && !self.has_areas())
        {
            let words = format!("{key} with policy = \"{policy}\"; accepted: with \"area-c-look\"");
            return Err(wrong(&self.name, &words));
        }
        if self.max_wait_ms.is_some() && !self.has_max_wait() {
            let words = format!(
                "max_wait_ms with policy = \"{policy}\"; accepted: with \"sstf\", \"look\", \"c-look\" or \
                 \"area-c-look\""
            );
            return Err(wrong(&self.name, &words));
        }
        Ok(())
    }

    fn quota(&self) -> Result<Quota, ConfigError> {
        match (self.quota, Word::or(self.quota_unit, QuotaUnit::Requests)) {
            (None, QuotaUnit::Requests) => Ok(Quota::Requests(QUOTA)),
            (Some(QuotaKey::None), _) => Ok(Quota::None),
            (Some(QuotaKey::Waiting), QuotaUnit::Requests) => Ok(Quota::Waiting),
            (Some(QuotaKey::Waiting), QuotaUnit::Bytes) => {
                let words = "quota = \"waiting\" counts requests; accepted: no quota_unit";
                Err(wrong(&self.name, &words))
            }
            (Some(QuotaKey::Count(count)), QuotaUnit::Requests) => Ok(Quota::Requests(count)),
            (Some(QuotaKey::Count(bytes)), QuotaUnit::Bytes) => Ok(Quota::Bytes(bytes)),
            (Some(QuotaKey::Size(size)), QuotaUnit::Bytes) => Ok(Quota::Bytes(size.bytes())),
            (Some(QuotaKey::Size(size)), QuotaUnit::Requests) => {
                let words = format!(
                    "quota = \"{size}\" is a size, and quota_unit = \"requests\"; accepted: a number of \
                     requests, or quota_unit = \"bytes\""
                );
                Err(wrong(&self.name, &words))
            }
            (None, QuotaUnit::Bytes) => {
                let words =
                    "quota_unit = \"bytes\" without a quota; accepted: with a quota in bytes";
                Err(wrong(&self.name, &words))
            }
        }
    }

    /// Where the second area begins: behind the disk where there is one area.
    fn boundary(&self, world: &World<'_>, scale: u64) -> Result<Lba, ConfigError> {
        let disk = world.room(&self.below, scale)?;
        let nodes = world.config.node.iter().map(NodeConfig::node);
        let of_slices = nodes.filter(|node| node.below() == [&*self.name]);
        let last_slice = of_slices.filter_map(|node| Some(node.part()?.start)).max();
        let Some(bytes) = self.boundary.map(Size::bytes).or(last_slice) else {
            return Ok(Lba(disk.0));
        };
        let boundary = BlockCount::from_bytes_floor(bytes / scale);
        match self.boundary {
            Some(stated) if boundary.0 == 0 || boundary >= disk => {
                let words = format!(
                    "boundary = \"{stated}\" on a disk of {} B; accepted: {BLOCK_BYTES} B or more, and less \
                     than that",
                    disk.bytes()
                );
                Err(wrong(&self.name, &words))
            }
            _ => Ok(Lba(boundary.0)),
        }
    }

    fn settings(&self, boundary: Lba) -> Result<SchedulerSettings, ConfigError> {
        let policy = match self.policy.0 {
            PolicyName::Fcfs => Policy::Fcfs,
            PolicyName::Sstf => Policy::Sstf,
            PolicyName::Look => Policy::Look { is_upwards: true },
            PolicyName::CLook => Policy::CLook,
            PolicyName::Deadline => Policy::Deadline(Deadline::default()),
            PolicyName::AreaCLook => Policy::AreaCLook(AreaCLook::new(boundary, self.quota()?)),
        };
        let max_wait = match self.max_wait_ms {
            _ if !self.has_max_wait() => None,
            None => Some(Duration::from_ms(MAX_WAIT_MS)),
            Some(MaxWait(wait)) => wait.limit(),
        };
        Ok(SchedulerSettings {
            policy,
            max_wait,
            clean_wait: self.clean_wait_ms.and_then(|CleanWait(wait)| wait.limit()),
            device_depth: self.device_depth as u32,
        })
    }
}

impl Kind for SchedulerConfig {
    const NAME: &'static str = "scheduler";
}

impl Node for SchedulerConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        vec![PortNodes { key: one("below"), nodes: vec![&self.below] }]
    }

    fn is_clear(&self) -> bool {
        true
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Nothing)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        world.room(&self.below, scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let below = world.config.node(&self.below).expect("a checked stack");
        if below.disk().is_none() {
            let words = format!(
                "it stands on `{}` of kind \"{}\"; accepted: a disk",
                self.below,
                below.kind()
            );
            return Err(wrong(&self.name, &words));
        }
        self.check_keys()?;
        let boundary = self.boundary(world, asked.scale)?;
        let settings = self.settings(boundary)?;
        let boundary = self.has_areas().then_some(boundary);
        Ok((Box::new(PlannedScheduler { settings, boundary }), vec![asked]))
    }
}

struct PlannedScheduler {
    settings: SchedulerSettings,
    boundary: Option<Lba>,
}

impl Planned for PlannedScheduler {
    fn depends_on_time(&self) -> Option<TimeKey> {
        Some(TimeKey {
            key: "kind = \"scheduler\"".to_string(),
            does: "orders requests by how long they have waited",
            instead: "a stack without such a node",
        })
    }

    fn conventional(
        &self,
        _: &Known<'_>,
        above: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        Ok(above.iter().map(|part| (0, *part)).collect())
    }

    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let disk = below.offers[0];
        let on_disk = disk.on_disk.as_ref().map(|it| OnDisk {
            statistics: Rc::clone(&it.statistics),
            start: it.start,
            area_prefix: it.area_prefix.clone(),
        });
        let scheduler = Scheduler::new(self.settings.clone(), &disk.flush_failure);
        let dispatches = scheduler.dispatches();
        Ok(Part {
            body: Body::Layer(Box::new(scheduler)),
            offer: Offer {
                geometry: disk.geometry.clone(),
                on_disk,
                mean_band: disk.mean_band,
                flush_failure: disk.flush_failure.clone(),
            },
            facts: super::Facts::Scheduler(Facts { boundary: self.boundary, dispatches }),
        })
    }
}

/// What a report needs to know of a scheduler.
pub struct Facts {
    /// Where the second area begins, with areas.
    pub boundary: Option<Lba>,
    /// What it hands down.
    pub dispatches: DispatchLog,
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![SCHEDULER]
    }

    fn resolved(&self) -> Map<String, Value> {
        let boundary =
            self.boundary.map(|it| ("boundary".to_string(), (it.0 * BLOCK_BYTES).into()));
        boundary.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Plan, StackConfig};
    use imbrex_core::buffer::ContentKind;

    /// A disk of 4 MiB with a scheduler that has such keys, and a slice above.
    fn build(keys: &str) -> Result<(), String> {
        built(&format!(
            "name = 'queued'\n[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'tiny-cmr'\n\
             [[node]]\nname = 'queue'\nkind = 'scheduler'\nbelow = 'disk'\n{keys}\n\
             [[node]]\nname = 'part'\nkind = 'slice'\nbelow = 'queue'\noffset = '64KiB'\nsize = '64KiB'\n"
        ))
    }

    fn built(text: &str) -> Result<(), String> {
        let config =
            StackConfig::from_text("file.toml", text, &[]).map_err(|error| error.to_string())?;
        Plan::new(&config, &BuildOptions::simulate(1))
            .and_then(|plan| plan.build(None, None, ContentKind::Counted))
            .map_err(|error| error.to_string())
            .map(|_| ())
    }

    #[test]
    fn every_policy_takes_its_keys() {
        for keys in [
            "policy = 'fcfs'\ndevice_depth = 4",
            "policy = 'deadline'",
            "policy = 'sstf'\nmax_wait_ms = 20",
            "policy = 'look'\nmax_wait_ms = 'none'",
            "policy = 'c-look'",
            "policy = 'area-c-look'",
            "policy = 'area-c-look'\nquota = 1\nboundary = '4KiB'",
            "policy = 'area-c-look'\nquota = 'none'\nmax_wait_ms = 1000",
            "policy = 'area-c-look'\nquota = '1MiB'\nquota_unit = 'bytes'",
            "policy = 'area-c-look'\nquota = 4096\nquota_unit = 'bytes'",
        ] {
            assert_eq!(build(keys), Ok(()), "{keys}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (keys, expected) in [
            ("policy = 'scan'", "it would choose as look does"),
            ("policy = 'c-scan'", "it would choose as c-look does"),
            ("policy = 'sptf'", "it belongs to a drive"),
            ("policy = 'elevator'", "accepted: \"fcfs\", \"sstf\""),
            ("policy = 'area-c-look'\nquota = 0", "quota = 0; accepted: 1 or more"),
            (
                "policy = 'area-c-look'\nquota = '1MiB'",
                "quota_unit = \"requests\"; accepted: a number of",
            ),
            ("policy = 'area-c-look'\nquota_unit = 'bytes'", "without a quota"),
            (
                "policy = 'c-look'\nquota = 3",
                "quota with policy = \"c-look\"; accepted: with \"area-c-look\"",
            ),
            ("policy = 'fcfs'\nboundary = '4KiB'", "boundary with policy = \"fcfs\""),
            ("policy = 'deadline'\nmax_wait_ms = 3", "max_wait_ms with policy = \"deadline\""),
            ("policy = 'look'\nmax_wait_ms = 0", "max_wait_ms = 0; accepted: 1 to 3600000"),
            ("policy = 'area-c-look'\nboundary = '0'", "boundary = \"0"),
            ("policy = 'area-c-look'\nboundary = '1TiB'", "boundary = \"1 TiB\" on a disk of"),
            ("policy = 'fcfs'\ndevice_depth = 0", "device_depth = 0"),
        ] {
            let error = build(keys).expect_err(keys);
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }

    #[test]
    fn it_stands_on_a_disk_alone() {
        let disk = "[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'tiny-cmr'\n";
        let queue = |name: &str, below: &str| {
            format!(
                "[[node]]\nname = '{name}'\nkind = 'scheduler'\nbelow = '{below}'\npolicy = 'fcfs'\n"
            )
        };
        let text = format!("name = 's'\n{disk}{}{}", queue("one", "disk"), queue("two", "one"));
        let error = built(&text).unwrap_err();
        assert!(
            error
                .contains("node `two`: it stands on `one` of kind \"scheduler\"; accepted: a disk"),
            "{error}"
        );
        let span = "[[node]]\nname = 'all'\nkind = 'span'\nbelow = ['one', 'two']\n";
        let text =
            format!("name = 's'\n{disk}{}{}{span}", queue("one", "disk"), queue("two", "disk"));
        let error = built(&text).unwrap_err();
        assert!(error.contains("node `disk` is below more than one node"), "{error}");
    }

    #[test]
    fn a_disk_states_the_order_of_its_drive() {
        let disk = |drive: &str, scheduler: &str| {
            built(&format!(
                "name = 's'\n[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = '{drive}'\nscheduler = '{scheduler}'\n"
            ))
        };
        assert_eq!(disk("tiny-cmr", "fcfs"), Ok(()));
        assert_eq!(disk("tiny-cmr", "sptf"), Ok(()));
        let error = disk("tiny-flash", "fcfs").unwrap_err();
        assert!(error.contains("node `disk`: scheduler is about a drive that rotates"), "{error}");
        let error = disk("tiny-cmr", "look").unwrap_err();
        assert!(error.contains("`sptf` or `fcfs`"), "{error}");
    }
}
