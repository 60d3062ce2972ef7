//! Memory in the place of a drive: the keys of a disk node with `media = "memory"`.

use super::disk::DiskConfig;
use imbrex_core::disk::Survival;
use imbrex_core::units::{BLOCK_BYTES, Duration};
use imbrex_core::words;
use imbrex_drives::quantity::{Rate, Size, Span};
use imbrex_drives::{Drive, DriveModel, MediaModel, SolidStateModel, Word};

/// Bytes per second where the node does not say: an assumption, less than half of what one channel of
/// DDR4-3200 carries (25.6 GB/s), because a block is copied once in and once out.
const BANDWIDTH_DEFAULT: Rate = Rate(10_000_000_000);
/// Microseconds from a request to its first byte where the node does not say: an assumption, about
/// what a driver of the kernel takes for a request to a RAM disk. The memory itself takes a tenth.
const LATENCY_US_DEFAULT: f64 = 1.0;
/// A second: slower memory is none.
const LATENCY_US_MAX: f64 = 1e6;
/// Requests whose latencies pass at the same time; more than any layer keeps in flight.
const CHANNELS: u32 = 1024;
/// Requests per second that nothing but the bandwidth bounds: one in a nanosecond.
const IOPS: u64 = 1_000_000_000;

words! {
    /// What a disk is that has no drive model.
    pub enum DiskMedia {
        /// Memory of the machine.
        Memory = "memory",
    }
}

/// What a disk node is made of.
pub(super) enum Medium<'a> {
    /// The drive of that name.
    Drive(&'a str),
    /// Memory.
    Memory(Memory),
}

/// The memory of a node.
pub(super) struct Memory {
    size: Size,
    bandwidth: Rate,
    latency_us: f64,
}

impl Memory {
    /// The model of it: after the latency a request takes what the bandwidth gives it, one after
    /// another, while the latencies of several pass together. Zeroes and flushes take no time.
    pub(super) fn drive(&self) -> Drive {
        let block = self.bandwidth.time_of(BLOCK_BYTES);
        // A solid-state disk counts the transfer of the first block in its latency.
        let latency = Span(Duration((self.latency_us * 1e3).round() as u64 + block.0));
        let model = DriveModel {
            name: "memory".to_string(),
            media: MediaModel::SolidState,
            capacity: self.size,
            sector: None,
            interface: self.bandwidth,
            write_cache: true,
            platters: None,
            seek: None,
            queue: None,
            cache: None,
            segments: None,
            overheads: None,
            bus: None,
            shingles: None,
            solid_state: Some(SolidStateModel {
                channels: CHANNELS,
                read_latency: latency,
                write_latency: latency,
                read_iops: IOPS,
                write_iops: IOPS,
                read_rate: self.bandwidth,
                write_rate: self.bandwidth,
                flush_latency: Span(Duration(0)),
            }),
            translation: None,
            zones: None,
        };
        Drive { file: "memory".to_string(), sha256: String::new(), model }
    }
}

impl DiskConfig {
    /// What the node is made of.
    ///
    /// # Errors
    /// In words, when its keys do not go together.
    pub(super) fn medium(&self) -> Result<Medium<'_>, String> {
        let wrong = |words: String| Err(format!("node `{}`: {words}", self.name));
        match (&self.drive, self.media) {
            (Some(_), Some(_)) => wrong(
                "drive and media = \"memory\" are both there; accepted: one of the two".to_string(),
            ),
            (None, None) => wrong(
                "neither drive nor media is there; accepted: drive = \"MODEL\", or media = \
                 \"memory\" with size and survives"
                    .to_string(),
            ),
            (Some(drive), None) => match self.key_of_memory() {
                Some(key) => wrong(format!(
                    "{key} is about memory; accepted: together with media = \"memory\", without drive"
                )),
                None => Ok(Medium::Drive(drive)),
            },
            (None, Some(Word(DiskMedia::Memory))) => match self.memory() {
                Ok(memory) => Ok(Medium::Memory(memory)),
                Err(words) => wrong(words),
            },
        }
    }

    fn memory(&self) -> Result<Memory, String> {
        let of_drive = [
            ("backing", self.backing.is_some()),
            ("write_cache", self.write_cache.is_some()),
            ("rotation", self.rotation.is_some()),
        ];
        if let Some((key, _)) = of_drive.iter().find(|(_, is_there)| *is_there) {
            return Err(format!(
                "{key} is about a drive; accepted with media = \"memory\": size, survives, bandwidth, \
                 latency_us"
            ));
        }
        let Some(size) = self.size else {
            return Err("media = \"memory\" needs size, such as size = \"1 GiB\"".to_string());
        };
        if self.survives.is_none() {
            return Err(
                "media = \"memory\" needs survives; accepted: \"nothing\", \"process\", \"power\""
                    .to_string(),
            );
        }
        if size.0 == 0 || size.0 % BLOCK_BYTES != 0 {
            return Err(format!("size = \"{size}\"; accepted: a multiple of 4 KiB, one or more"));
        }
        let latency_us = self.latency_us.unwrap_or(LATENCY_US_DEFAULT);
        if !(0.0..=LATENCY_US_MAX).contains(&latency_us) {
            return Err(format!("latency_us = {latency_us}; accepted: 0 to {LATENCY_US_MAX}"));
        }
        Ok(Memory { size, bandwidth: self.bandwidth.unwrap_or(BANDWIDTH_DEFAULT), latency_us })
    }

    /// A key that only memory has.
    fn key_of_memory(&self) -> Option<&'static str> {
        let keys = [
            ("size", self.size.is_some()),
            ("survives", self.survives.is_some()),
            ("bandwidth", self.bandwidth.is_some()),
            ("latency_us", self.latency_us.is_some()),
        ];
        let mut there = keys.into_iter().filter(|(_, is_there)| *is_there);
        there.next().map(|(key, _)| key)
    }

    /// What the contents survive; a drive keeps them over a power cut.
    pub fn survival(&self) -> Survival {
        Word::or(self.survives, Survival::Power)
    }

    /// The drive, or the memory as one.
    ///
    /// # Errors
    /// In words, when there is no such drive, or the keys do not go together.
    pub(crate) fn open_drive(&self) -> Result<Drive, String> {
        match self.medium()? {
            Medium::Drive(name) => {
                Drive::open(name).map_err(|error| format!("node `{}`: {error}", self.name))
            }
            Medium::Memory(memory) => Ok(memory.drive()),
        }
    }
}

/// Finds keys of a disk that do not go together.
pub(crate) fn check_medium(node: &super::NodeConfig) -> Result<(), String> {
    match node {
        super::NodeConfig::Disk(disk) => disk.medium().map(|_| ()),
        _ => Ok(()),
    }
}
