//! Values of options that have a form of their own; errors say what is accepted.

use super::job::{Access, BlockSizes, Direction, Distribution, Job, Mix, Sequencer, ZonedAccess};
use super::units::{KbBase, SIZES, boolean, number, size};

/// Takes over `rw`: which requests a job makes, and how one follows another.
pub(super) fn pattern(value: &str, base: KbBase, job: &mut Job) -> Result<(), String> {
    let (word, tail) = match value.split_once(':') {
        Some((word, tail)) => (word.trim(), Some(tail.trim())),
        None => (value, None),
    };
    let (random, mix) = match word {
        "read" => (false, Mix::Only(Direction::Read)),
        "write" => (false, Mix::Only(Direction::Write)),
        "trim" => (false, Mix::Only(Direction::Trim)),
        "rw" | "readwrite" => (false, Mix::ReadWrite { read_percent: 50 }),
        "randread" => (true, Mix::Only(Direction::Read)),
        "randwrite" => (true, Mix::Only(Direction::Write)),
        "randtrim" => (true, Mix::Only(Direction::Trim)),
        "randrw" => (true, Mix::ReadWrite { read_percent: 50 }),
        _ => {
            return Err(
                "read, write, trim, rw, randread, randwrite, randtrim or randrw, with :N if need be"
                    .to_string(),
            );
        }
    };
    job.mix = mix;
    job.access = match (random, tail) {
        (true, None) => Access::RANDOM,
        (true, Some(tail)) => Access::Random {
            per_draw: number(tail, 1, u64::MAX)?,
            sequencer: Sequencer::Sequential,
        },
        (false, None) => Access::Sequential { skip_bytes: 0 },
        (false, Some(tail)) => {
            let (sign, digits) = match tail.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, tail),
            };
            let bytes = i64::try_from(size(digits, base)?).map_err(|_| SIZES)?;
            Access::Sequential { skip_bytes: sign * bytes }
        }
    };
    Ok(())
}

/// `random_distribution`.
pub(super) fn distribution(value: &str) -> Result<Distribution, String> {
    let accepted = || "random, or zipf:THETA with THETA above 0 and not 1".to_string();
    if value == "random" {
        return Ok(Distribution::Uniform);
    }
    let theta = value.strip_prefix("zipf").ok_or_else(accepted)?;
    let theta = match theta.strip_prefix(':') {
        // fio's default.
        None if theta.is_empty() => 1.1,
        None => return Err(accepted()),
        Some(theta) => theta.parse::<f64>().map_err(|_| accepted())?,
    };
    if !(theta > 0.0 && theta.is_finite() && theta != 1.0) {
        return Err(accepted());
    }
    Ok(Distribution::Zipf { theta })
}

/// Lengths with percentages (`bssplit`); those without one share what is left.
pub(super) fn split(text: &str, base: KbBase) -> Result<BlockSizes, String> {
    let accepted = || "lengths with percentages such as 4k/60:64k/40".to_string();
    let mut sizes: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':') {
        let (length, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            digits => Some(digits.parse::<u32>().map_err(|_| accepted())?),
        };
        sizes.push((size(length, base)?, percent));
    }
    let given: u64 = sizes.iter().filter_map(|(_, percent)| *percent).map(u64::from).sum();
    let open = sizes.iter().filter(|(_, percent)| percent.is_none()).count() as u64;
    if given > 100 || (open == 0 && given < 100) {
        return Err(format!("{} that add up to 100", accepted()));
    }
    // In parts of a percent that the open ones can share evenly.
    let scale = open.max(1);
    let weight = |percent: Option<u32>| match percent {
        Some(percent) => u64::from(percent) * scale,
        None => 100 - given,
    };
    let weighted = sizes.into_iter().map(|(bytes, p)| (bytes, weight(p) as u32));
    Ok(BlockSizes::Split(weighted.filter(|(_, weight)| *weight > 0).collect()))
}

/// `percentile_list`, the lowest first.
pub(super) fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let accepted = || "up to 20 numbers above 0 up to 100, such as 50:99:99.9".to_string();
    let mut list = value
        .split(':')
        .map(|text| text.trim().parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0))
        .collect::<Option<Vec<f64>>>()
        .ok_or_else(accepted)?;
    if list.len() > 20 {
        return Err(accepted());
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}

/// Takes over one of the options that only `zonemode=zbd` has.
pub(super) fn zbd_option(zbd: &mut ZonedAccess, name: &str, value: &str) -> Result<(), String> {
    let share = || {
        let share = value.parse::<f64>().ok();
        share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "0 to 1".to_string())
    };
    match name {
        // As in fio, 0 is the limit of the drive.
        "max_open_zones" => {
            let zones = number(value, 0, 1 << 20)? as u32;
            zbd.open_max = (zones > 0).then_some(zones);
        }
        "read_beyond_wp" => zbd.read_beyond_pointer = boolean(value)?,
        "zone_reset_threshold" => zbd.reset_threshold = share()?,
        _ => zbd.reset_frequency = share()?,
    }
    Ok(())
}
