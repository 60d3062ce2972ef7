//! What a kind of recording means for what people do with disks.

use super::models::Kind;
use Verdict::{Avoid, Good, NeedsZones, Unknown, WithCare};
use serde::Serialize;

/// How well a use goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As on any disk.
    Good,
    /// It works when the disk gets time to rest, or large sequential writes.
    WithCare,
    /// It will be slow beyond what users put up with, or time out.
    Avoid,
    /// It needs software that knows zones.
    NeedsZones,
    /// It depends on how the disk records, which nothing says.
    Unknown,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::WithCare => "with care",
            Verdict::Avoid => "avoid",
            Verdict::NeedsZones => "needs zones",
            Verdict::Unknown => "unknown",
        }
    }
}

/// A use of disks, and how it goes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Advice {
    /// What for.
    pub r#use: &'static str,
    /// How it goes.
    pub verdict: Verdict,
    /// Why.
    pub why: &'static str,
}

const fn advice(r#use: &'static str, verdict: Verdict, why: &'static str) -> Advice {
    Advice { r#use, verdict, why }
}

const RESILVER: &str = "ZFS resilver";
const BACKUP: &str = "backup and archive";
const NVR: &str = "video recording (NVR)";
const DATABASE: &str = "database or virtual machines";

/// How to find out what nobody says.
pub const FIND_OUT: &str = "`DISK=/dev/sdX fio experiments/fit/small-writes.fio` overwrites an empty \
    disk with random writes of 8 KiB: a drive-managed SMR disk stalls for a second and more from some point \
    on, a conventional one keeps its pace (docs/fit.md)";

/// What to expect of a kind of disk.
pub fn of(kind: Kind) -> [Advice; 4] {
    match kind {
        Kind::Conventional => conventional(),
        Kind::SolidState => solid_state(),
        Kind::DriveManaged => drive_managed(),
        Kind::HostAware => host_aware(),
        Kind::HostManaged => host_managed(),
        Kind::Unknown => [RESILVER, BACKUP, NVR, DATABASE]
            .map(|r#use| advice(r#use, Unknown, "find out first how the disk records")),
    }
}

fn conventional() -> [Advice; 4] {
    [
        advice(RESILVER, Good, "limited by seeks and the sequential rate"),
        advice(BACKUP, Good, "any order of writes"),
        advice(NVR, Good, "many streams at once cost seeks, nothing else"),
        advice(DATABASE, Good, "as on any disk with one arm"),
    ]
}

fn solid_state() -> [Advice; 4] {
    [
        advice(RESILVER, Good, "no arm"),
        advice(BACKUP, Good, "no arm"),
        advice(NVR, Good, "mind the write endurance"),
        advice(DATABASE, Good, "no arm"),
    ]
}

fn drive_managed() -> [Advice; 4] {
    [
        advice(
            RESILVER,
            Avoid,
            "days of small writes with no rest fill the persistent cache; then each few of them \
         cost the rewrite of a band, and a controller may drop the disk for not answering. An \
         mdraid rebuild, which writes in sequence, is fine",
        ),
        advice(
            BACKUP,
            WithCare,
            "large files written one after another go past the persistent cache; many small files \
         fill it. Let the disk idle between backups, powered on",
        ),
        advice(
            NVR,
            WithCare,
            "a few sequential streams are recognised; many cameras interleaved look like random \
         writes that never pause",
        ),
        advice(
            DATABASE,
            Avoid,
            "random writes stall for a second or more once the persistent cache is full. A \
         write-back cache in front that knows bands helps: docs/stacks.md puts one over the \
         nearest model",
        ),
    ]
}

fn host_aware() -> [Advice; 4] {
    [
        advice(RESILVER, Avoid, "writes off the write pointers go to the media cache, which fills"),
        advice(BACKUP, Good, "when files are written at the write pointers of zones"),
        advice(
            NVR,
            WithCare,
            "one zone a camera is ideal; a file system that knows no zones is not",
        ),
        advice(
            DATABASE,
            Avoid,
            "random writes fill the media cache; cleaning then blocks requests",
        ),
    ]
}

fn host_managed() -> [Advice; 4] {
    [
        advice(RESILVER, NeedsZones, "ZFS knows no zones; btrfs on zones rebuilds in sequence"),
        advice(BACKUP, NeedsZones, "btrfs, zonefs or f2fs on zones, or dm-zoned below another"),
        advice(NVR, NeedsZones, "one zone a camera through zonefs is ideal"),
        advice(DATABASE, NeedsZones, "a log-structured store made for zones; nothing else"),
    ]
}
