//! The ready-made stacks of one disk and one cache on an SSD, and which of them turns a workload.

use super::drive::{DriveVerdict, Outcome, Over, Served};
use super::facts::Facts;
use imbrex_drives::MediaModel;
use imbrex_stack::{ConfigError, NodeConfig, Setting, StackConfig, ready_made};
use serde::Serialize;

/// A stack is one of the best when its mean response time is within a tenth of the least.
const NEAR: f64 = 1.1;

/// The kinds of node that are a cache of one size on an SSD.
const CACHE_KINDS: [&str; 2] = ["write-back-cache", "zone-lru-buffer"];

/// A stack of one disk and one cache.
pub(super) struct Candidate {
    pub system: String,
    /// The node that is the cache.
    pub cache: String,
    /// What puts it on another drive.
    pub settings: Vec<String>,
    /// The drive below.
    pub drive: String,
    pub is_shingled: bool,
}

/// The ready-made stacks of one disk and one cache, as they are; and those that leave the log to the drive
/// on each of `drives` as well.
pub(super) fn candidates(drives: &[String]) -> Result<Vec<Candidate>, ConfigError> {
    let mut found = Vec::new();
    for system in ready_made() {
        let config = StackConfig::load(system, &[])?;
        let Some((cache, disk, own)) = parts(&config) else { continue };
        let is_shingled = is_shingled(&own);
        let candidate = |settings: Vec<String>, drive: &str| Candidate {
            system: system.to_string(),
            cache: cache.clone(),
            settings,
            drive: drive.to_string(),
            is_shingled,
        };
        found.push(candidate(vec![], &own));
        if !leaves_all_to_the_drive(&config) {
            continue;
        }
        for drive in drives.iter().filter(|drive| **drive != own && is_drive_managed(drive)) {
            let setting = format!("{disk}.drive={drive}");
            if StackConfig::load(system, &[Setting::parse(&setting)?]).is_ok() {
                found.push(candidate(vec![setting], drive));
            }
        }
    }
    Ok(found)
}

/// The cache, the disk that rotates, and its drive: in a stack that has one of each and an SSD.
fn parts(config: &StackConfig) -> Option<(String, String, String)> {
    let caches = config.node.iter().filter(|node| CACHE_KINDS.contains(&node.kind()));
    let [cache] = caches.collect::<Vec<_>>()[..] else { return None };
    let disks: Vec<(&str, &str)> = config
        .node
        .iter()
        .filter_map(NodeConfig::disk)
        .filter_map(|disk| Some((disk.name.as_str(), disk.drive.as_deref()?)))
        .collect();
    let rotates = |drive: &str| {
        imbrex_drives::Drive::open(drive).is_ok_and(|it| it.model.media != MediaModel::SolidState)
    };
    let (rotating, flash): (Vec<_>, Vec<_>) =
        disks.into_iter().partition(|(_, drive)| rotates(drive));
    match (&rotating[..], &flash[..]) {
        ([(disk, drive)], [_]) => {
            Some((cache.name().to_string(), (*disk).to_string(), (*drive).to_string()))
        }
        _ => None,
    }
}

/// Whether the translation of a stack says nothing, so that all is as the drive has it.
fn leaves_all_to_the_drive(config: &StackConfig) -> bool {
    let translations = config.node.iter().filter(|node| node.kind() == "persistent-cache");
    translations.clone().count() == 1
        && translations
            .filter_map(|node| toml::Table::try_from(node).ok())
            .all(|keys| keys.keys().all(|key| ["name", "kind", "below"].contains(&key.as_str())))
}

fn is_shingled(drive: &str) -> bool {
    imbrex_drives::Drive::open(drive).is_ok_and(|it| it.model.media == MediaModel::Shingled)
}

fn is_drive_managed(drive: &str) -> bool {
    imbrex_drives::Drive::open(drive)
        .is_ok_and(|it| it.model.translation.is_some() && it.model.zones.is_none())
}

/// A cache that was tried, at the time stamps of the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheTrial {
    /// Ready-made stack.
    pub system: String,
    /// Its disk.
    pub drive: String,
    /// Whether that is shingled.
    pub is_shingled: bool,
    /// Size of the cache.
    pub cache_bytes: u64,
    /// The size as a share of what the workload touches.
    pub share_of_touched: f64,
    /// How requests were served.
    #[serde(flatten)]
    pub served: Served,
    /// Rounds that fill the log below it twice; 1 where there is none.
    pub rounds: u32,
    /// These rounds; absent unless the stack is one of the best of its size and keeps up with one round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
}

impl CacheTrial {
    /// The cache keeps up, with a full log below it too.
    pub fn keeps_up_for_good(&self) -> bool {
        let over = self.over.as_ref();
        let is_known = self.rounds <= 1 || over.is_some_and(|over| over.served.keeps_up);
        self.served.keeps_up && is_known
    }

    /// The mean response time over the longest run.
    fn later_mean_ms(&self) -> f64 {
        let over = self.over.as_ref().map(|over| &over.served);
        over.unwrap_or(&self.served).mean_ms.unwrap_or(f64::INFINITY)
    }

    pub(super) fn new(
        candidate: &Candidate,
        cache_bytes: u64,
        facts: &Facts,
        served: Served,
        rounds: u32,
    ) -> CacheTrial {
        CacheTrial {
            system: candidate.system.clone(),
            drive: candidate.drive.clone(),
            is_shingled: candidate.is_shingled,
            cache_bytes,
            share_of_touched: cache_bytes as f64 / facts.touched_bytes.max(1) as f64,
            served,
            rounds,
            over: None,
        }
    }
}

/// Those of `tried` whose mean response time is within a tenth of the least, and those on shingled disks within
/// a tenth of the least of these.
pub(super) fn finalists(tried: &[CacheTrial]) -> Vec<usize> {
    let least_of = |may: &dyn Fn(&CacheTrial) -> bool| {
        tried.iter().filter(|trial| may(trial)).map(mean_of).fold(f64::INFINITY, f64::min)
    };
    let of_all = least_of(&|_| true) * NEAR;
    let of_shingled = least_of(&|trial| trial.is_shingled) * NEAR;
    let is_near = |trial: &CacheTrial| {
        mean_of(trial) <= of_all || trial.is_shingled && mean_of(trial) <= of_shingled
    };
    (0..tried.len()).filter(|index| is_near(&tried[*index])).collect()
}

/// Which cache to take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// A shingled drive alone does not do.
    pub is_needed: bool,
    /// The cache keeps up, with a full log below it too.
    pub turns_it: bool,
    /// Of the stacks with a cache of this size one with a mean response time within a tenth of the shortest, as
    /// recorded: that which keeps up with a full log too, and then does best.
    pub best: CacheTrial,
    /// Of those on shingled disks, where that is another one.
    pub best_shingled: Option<CacheTrial>,
}

/// The best stack with the smallest cache that keeps up; with the largest one, if none does.
pub(super) fn advice(drives: &[DriveVerdict], tried: &[CacheTrial]) -> Option<Advice> {
    let keeps_up = |trial: &&CacheTrial| trial.is_shingled && trial.keeps_up_for_good();
    let turning = tried.iter().filter(keeps_up).map(|trial| trial.cache_bytes).min();
    let size = turning.or_else(|| tried.iter().map(|trial| trial.cache_bytes).max())?;
    let best_of = |may: &dyn Fn(&CacheTrial) -> bool| {
        let of_size = tried.iter().filter(|trial| trial.cache_bytes == size && may(trial));
        let least = of_size.clone().map(mean_of).fold(f64::INFINITY, f64::min);
        let near = of_size.filter(|trial| mean_of(trial) <= least * NEAR);
        let order = |trial: &CacheTrial| (!trial.keeps_up_for_good(), trial.later_mean_ms());
        near.min_by(|a, b| {
            let ((a, a_mean), (b, b_mean)) = (order(a), order(b));
            a.cmp(&b).then(a_mean.total_cmp(&b_mean))
        })
        .cloned()
    };
    let best = best_of(&|_| true)?;
    let best_shingled = best_of(&|trial| trial.is_shingled).filter(|trial| *trial != best);
    let shingled = drives.iter().filter(|drive| drive.is_shingled);
    Some(Advice {
        is_needed: shingled.clone().any(|drive| drive.outcome != Outcome::KeepsUp),
        turns_it: turning.is_some(),
        best,
        best_shingled,
    })
}

fn mean_of(trial: &CacheTrial) -> f64 {
    trial.served.mean_ms.unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_the_stacks_of_one_disk_and_one_cache() {
        let names = |drives: &[String]| -> Vec<String> {
            let found = candidates(drives).expect("ready-made stacks are in order");
            found.iter().map(|it| format!("{} on {}", it.system, it.drive)).collect()
        };
        let found = names(&[]);
        for wanted in
            ["lru on st5000as0011", "ride-archive on st8000as0002", "cmr-buffer on wd-4tb-7200"]
        {
            assert!(found.iter().any(|name| name == wanted), "{wanted} is not among {found:?}");
        }
        for other in ["hwsr", "raid4smr", "smr-only", "split"] {
            assert!(!found.iter().any(|name| name.starts_with(&format!("{other} "))), "{found:?}");
        }
        // Those that leave the log to the drive stand on others too, but not on a conventional one.
        let more = names(&["wd40efax".to_string(), "wd-4tb-7200".to_string()]);
        let added: Vec<&String> = more.iter().filter(|name| !found.contains(name)).collect();
        assert!(
            added.len() >= 3 && added.iter().all(|name| name.ends_with("-archive on wd40efax"))
        );
    }

    fn trial(system: &str, cache_bytes: u64, mean_ms: f64, keeps_up: bool) -> CacheTrial {
        CacheTrial {
            system: system.to_string(),
            drive: String::new(),
            is_shingled: system != "cmr-buffer",
            cache_bytes,
            share_of_touched: 0.0,
            rounds: 1,
            over: None,
            served: Served {
                mean_ms: Some(mean_ms),
                p99_9_ms: None,
                longest_ms: None,
                behind_s: 0.0,
                keeps_up,
                bands_rewritten: 0,
                command: String::new(),
            },
        }
    }

    #[test]
    fn the_smallest_size_that_keeps_up_is_advised_with_the_shortest_mean() {
        let tried = [
            trial("lru", 1, 900.0, false),
            trial("cmr-buffer", 1, 5.0, true),
            trial("lru", 2, 90.0, true),
            trial("pore", 2, 80.0, true),
            trial("cmr-buffer", 2, 6.0, true),
        ];
        let told = advice(&[], &tried).expect("caches were tried");
        assert!(told.turns_it && !told.is_needed);
        assert_eq!((told.best.system.as_str(), told.best.cache_bytes), ("cmr-buffer", 2));
        assert_eq!(told.best_shingled.expect("another one").system, "pore");
        // With a full log the one that was best falls behind.
        let mut tried = tried;
        tried[3].rounds = 4;
        let later = tried[0].served.clone();
        let (log_fill, log_full_after_s) = (1.0, Some(10.0));
        tried[3].over = Some(Over { rounds: 4, served: later, log_fill, log_full_after_s });
        tried[2].served.mean_ms = Some(85.0);
        let told = advice(&[], &tried).expect("caches were tried");
        assert_eq!(told.best_shingled.expect("another one").system, "lru");
        assert_eq!(finalists(&tried[2..]), [0, 1, 2]);
        assert_eq!(finalists(&tried[..2]), [0, 1], "the best, and the best on a shingled disk");
        let told = advice(&[], &tried[..1]).expect("a cache was tried");
        assert!(!told.turns_it && told.best.system == "lru" && told.best_shingled.is_none());
        assert_eq!(advice(&[], &[]), None);
    }
}
