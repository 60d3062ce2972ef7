//! Measurements of host-managed drives: HGST HC620, with fio 3.13, libaio and direct I/O
//! (zonedstorage.io, "SMR fio benchmark").

use super::zoned_host::{Latencies, Step, Stream, ZonedDrive};
use crate::experiment::{BuildOptions, ConfigError, Setting};
use imbrex_core::buffer::ContentKind;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;

const KIB: u64 = 1024;
/// Zones that are written.
const ZONES_WRITTEN: u32 = 4;
/// Random writes that are measured: they write the four zones about twice.
const RANDOM_WRITES: u64 = 32_768;

fn open(drive: &str, settings: &[Setting], seed: u64) -> Result<ZonedDrive, ConfigError> {
    let options = BuildOptions::simulate(seed);
    ZonedDrive::open(drive, settings, &options, ContentKind::Counted)
}

/// The first zones that are written in sequence.
fn first_zones(drive: &ZonedDrive) -> Vec<Extent> {
    let first = drive.zones.conventional_zones;
    (first..first + ZONES_WRITTEN)
        .map(|zone| drive.zone(zone))
        .collect()
}

/// An operation for each piece of a zone, in order.
fn through(zone: Extent, bytes: u64, operation: Operation) -> impl Iterator<Item = Step> {
    let blocks = bytes / BLOCK_BYTES;
    let starts = (zone.start.0..=zone.end().0 - blocks).step_by(blocks as usize);
    starts.map(move |start| Step::new(operation, Extent::new(start, blocks)))
}

fn run(drive: &mut ZonedDrive, streams: Vec<Stream<'_>>) -> Result<Latencies, ConfigError> {
    drive
        .run(streams)
        .map_err(|error| ConfigError::words(error.to_string()))
}

/// V31: 256 KiB writes at queue depth 8, one after another through the first four zones that are
/// written in sequence.
///
/// # Errors
/// When there is no such drive, or it refuses a write.
pub fn sequential_write(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<Latencies, ConfigError> {
    let mut drive = open(drive, settings, seed)?;
    let zones = first_zones(&drive).into_iter();
    let steps = zones.flat_map(|zone| through(zone, 256 * KIB, Operation::WRITE));
    run(&mut drive, vec![Stream::new(8, steps)])
}

/// V33: 256 KiB reads at queue depth 8 where nothing was written.
///
/// # Errors
/// When there is no such drive, or it refuses a read.
pub fn read_past_pointer(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<Latencies, ConfigError> {
    let mut drive = open(drive, settings, seed)?;
    let zones = first_zones(&drive).into_iter();
    let steps = zones.flat_map(|zone| through(zone, 256 * KIB, Operation::Read));
    run(&mut drive, vec![Stream::new(8, steps)])
}

/// V38: 64 KiB writes, eight at a time, to random zones of four, each at its write pointer; a full
/// zone is reset first.
///
/// # Errors
/// When there is no such drive, or it refuses a write.
pub fn random_zone_write(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<Latencies, ConfigError> {
    let mut drive = open(drive, settings, seed)?;
    let zones = first_zones(&drive);
    let blocks = 64 * KIB / BLOCK_BYTES;
    let mut pointers = [0; ZONES_WRITTEN as usize];
    let mut rng = Rng::new(seed, 38);
    let steps = (0..RANDOM_WRITES).map(|_| {
        let index = rng.below(u64::from(ZONES_WRITTEN)) as usize;
        let (zone, pointer) = (zones[index], &mut pointers[index]);
        if *pointer + blocks > zone.blocks.0 {
            *pointer = 0;
            return Step::new(Operation::ZoneReset, zone);
        }
        let extent = Extent::new(zone.start.0 + *pointer, blocks);
        *pointer += blocks;
        Step::new(Operation::WRITE, extent)
    });
    run(&mut drive, vec![Stream::new(8, steps)])
}

/// V39: four writers, each through a zone of its own, 512 KiB at a time and waiting for each.
///
/// # Errors
/// When there is no such drive, or it refuses a write.
pub fn four_streams(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<Latencies, ConfigError> {
    let mut drive = open(drive, settings, seed)?;
    let zones = first_zones(&drive).into_iter();
    let streams = zones.map(|zone| Stream::new(1, through(zone, 512 * KIB, Operation::WRITE)));
    let streams = streams.collect();
    run(&mut drive, streams)
}

/// V39b: opens zones by command until one is refused: how many were open, and the error.
///
/// # Errors
/// When there is no such drive, or it never refuses.
pub fn open_past_limit(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<(u32, IoError), ConfigError> {
    let mut drive = open(drive, settings, seed)?;
    let first = drive.zones.conventional_zones;
    for zone in first..drive.zones.zones() {
        let step = Step::new(Operation::ZoneOpen, drive.zone(zone));
        let stream = Stream::new(1, std::iter::once(step));
        if let Err(error) = drive.run(vec![stream]) {
            return Ok((zone - first, error));
        }
    }
    Err(ConfigError::words("every zone could be open at once"))
}
