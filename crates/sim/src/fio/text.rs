//! Results as fio prints them for a reader.

use super::job::Direction;
use super::json::{
    BATCHES, DEPTHS, Setting, aggregate_bytes_per_s, complete_shares, depth_shares, errno,
    ios_per_s, latency_steps, per_second, share_of_group, submit_shares,
};
use super::outcome::{DirectionOutcome, JobOutcome, Outcome};
use super::parse::{JobFile, JobReport};
use super::spread::{Latencies, Spread};
use std::fmt::Write;

/// A size with four digits at least and a binary and a decimal prefix.
fn bytes(value: f64, suffix: &str) -> (String, String) {
    let scaled = |mut value: f64, step: f64, units: [&str; 6]| {
        let mut unit = 0;
        while value >= 10_000.0 && unit + 1 < units.len() {
            value /= step;
            unit += 1;
        }
        // Below ten thousand bytes fio counts in thousands already.
        if unit == 0 && value >= step {
            value /= step;
            unit = 1;
        }
        let digits = match value {
            v if v < 10.0 => 2,
            v if v < 100.0 => 1,
            _ => 0,
        };
        let digits = if unit == 0 { 0 } else { digits };
        format!("{value:.digits$}{}{suffix}", units[unit])
    };
    (
        scaled(value, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        scaled(value, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB"]),
    )
}

fn rate(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.1}k", v / 1000.0),
        v if v < 10.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// The unit in which fio would print latencies up to this, and its nanoseconds.
fn unit_of(spread: &Spread) -> (&'static str, u64) {
    match (spread.min(), spread.mean) {
        (min, mean) if min > 2_000_000 && mean > 99_999_999.0 => ("msec", 1_000_000),
        (min, mean) if min > 2_000 && mean > 99_999.0 => ("usec", 1_000),
        _ => ("nsec", 1),
    }
}

/// All results.
pub fn summary(file: &JobFile, outcome: &Outcome, setting: &Setting) -> String {
    let reported = outcome.reported(&file.jobs);
    let mut out = String::new();
    let mut print = || -> std::fmt::Result {
        for entry in &reported {
            let resets = file.jobs[entry.job].zones.map(|_| entry.zone_resets);
            job(&mut out, entry, &file.reports[entry.job], resets, &reported)?;
        }
        let groups = reported.iter().map(|entry| entry.group).max().unwrap_or(0);
        for number in 0..=groups {
            group(&mut out, outcome, number)?;
        }
        let span = outcome.ended.since(outcome.started).as_seconds();
        let (size, _) = bytes(setting.device_bytes as f64, "");
        writeln!(
            out,
            "\nOn {} ({size}, seed {}{}): {span:.3} s of virtual time, busy {:.2}%",
            setting.system,
            setting.seed,
            match setting.scale {
                1 => String::new(),
                scale => format!(", scale {scale}"),
            },
            super::json::share(outcome.busy.0, outcome.ended.since(outcome.started).0),
        )
    };
    print().expect("a string takes everything");
    out
}

fn job(
    out: &mut String,
    entry: &JobOutcome,
    report: &JobReport,
    resets: Option<u64>,
    all: &[JobOutcome],
) -> std::fmt::Result {
    writeln!(
        out,
        "{}: (groupid={}, jobs={}): err={:2}",
        entry.name,
        entry.group,
        entry.jobs,
        errno(entry.error)
    )?;
    if let Some(words) = &report.description {
        writeln!(out, "  Description  : [{words}]")?;
    }
    for way in Direction::ALL {
        let of = entry.direction(way);
        if of.ios > 0 {
            let aggregate = aggregate_bytes_per_s(all, entry.group, way);
            let resets = resets.filter(|_| way == Direction::Write);
            let resets = resets.map_or(String::new(), |resets| format!("; {resets} zone resets"));
            direction(out, way, of, (aggregate, &resets), &report.percentiles)?;
        }
    }
    for (unit, shares) in ["nsec", "usec", "msec"].iter().zip(latency_steps(entry)) {
        let shown: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(label, share)| format!("{label}={share:.2}%"))
            .collect();
        for line in shown.chunks(5) {
            writeln!(out, "  lat ({unit})   : {}", line.join(", "))?;
        }
    }
    if entry.flushes.spread.count > 0 {
        writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
        spread(out, "  sync", &entry.flushes.spread)?;
        percentiles(out, "sync", &entry.flushes, &report.percentiles)?;
    }
    for (label, labels, shares) in [
        ("  IO depths ", DEPTHS, depth_shares(entry)),
        ("     submit ", BATCHES, submit_shares(entry)),
        ("     complete", BATCHES, complete_shares(entry)),
    ] {
        let shown: Vec<String> = labels
            .iter()
            .zip(shares)
            .map(|(label, share)| format!("{label}={share:.1}%"))
            .collect();
        writeln!(out, "{label:15}: {}", shown.join(", "))?;
    }
    let count = |way| entry.direction(way).ios;
    writeln!(
        out,
        "     issued rwts: total={},{},{},{} short=0,0,0,0 dropped=0,0,0,0",
        count(Direction::Read),
        count(Direction::Write),
        count(Direction::Trim),
        entry.flushes.spread.count
    )
}

fn direction(
    out: &mut String,
    way: Direction,
    of: &DirectionOutcome,
    (group_bytes_per_s, resets): (u64, &str),
    list: &[f64],
) -> std::fmt::Result {
    let (binary, decimal) = bytes(per_second(of.bytes, of.runtime_ms()) as f64, "/s");
    let (moved, _) = bytes(of.bytes as f64, "");
    writeln!(
        out,
        "  {}: IOPS={}, BW={binary} ({decimal})({moved}/{}msec){resets}",
        way.name(),
        rate(ios_per_s(of)),
        of.runtime_ms()
    )?;
    spread(out, "  clat", &of.latency.spread)?;
    spread(out, "   lat", &of.latency.spread)?;
    percentiles(out, "clat", &of.latency, list)?;
    let (bw, iops) = (&of.bandwidth_kib_per_s, &of.requests_per_s);
    if bw.count > 0 {
        writeln!(
            out,
            "   bw (  KiB/s): min={:5}, max={:5}, per={:.2}%, avg={:.2}, stdev={:.2}, samples={}",
            bw.min(),
            bw.max,
            share_of_group(of, group_bytes_per_s),
            bw.mean,
            bw.deviation(),
            bw.count
        )?;
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:.2}, stdev={:.2}, samples={}",
            iops.min(),
            iops.max,
            iops.mean,
            iops.deviation(),
            iops.count
        )?;
    }
    Ok(())
}

fn spread(out: &mut String, label: &str, of: &Spread) -> std::fmt::Result {
    let (unit, ns) = unit_of(of);
    writeln!(
        out,
        "  {label} ({unit}): min={}, max={}, avg={:.2}, stdev={:.2}",
        of.min() / ns,
        of.max / ns,
        of.mean / ns as f64,
        of.deviation() / ns as f64
    )
}

fn percentiles(out: &mut String, label: &str, of: &Latencies, list: &[f64]) -> std::fmt::Result {
    let (unit, ns) = unit_of(&of.spread);
    writeln!(out, "    {label} percentiles ({unit}):")?;
    let shown: Vec<String> = list
        .iter()
        .map(|percent| format!("{percent:5.2}th=[{:5}]", of.percentile_ns(*percent) / ns))
        .collect();
    let lines: Vec<String> =
        shown.chunks(4).map(|line| format!("     | {}", line.join(", "))).collect();
    writeln!(out, "{}", lines.join(",\n"))
}

fn group(out: &mut String, outcome: &Outcome, number: u32) -> std::fmt::Result {
    writeln!(out, "\nRun status group {number} (all jobs):")?;
    for way in Direction::ALL {
        let of_group = outcome.jobs.iter().filter(|job| job.group == number);
        let ways: Vec<&DirectionOutcome> =
            of_group.map(|job| job.direction(way)).filter(|d| d.ios > 0).collect();
        let ms = ways.iter().map(|d| d.runtime_ms());
        let (Some(shortest), Some(longest)) = (ms.clone().min(), ms.max()) else {
            continue;
        };
        let moved: u64 = ways.iter().map(|d| d.bytes).sum();
        let rates = ways.iter().map(|d| per_second(d.bytes, d.runtime_ms()));
        let slowest = rates.clone().min().unwrap_or(0);
        let fastest = rates.max().unwrap_or(0);
        let (whole, whole_si) = bytes(per_second(moved, longest) as f64, "/s");
        let ((slowest, slowest_si), (fastest, fastest_si)) =
            (bytes(slowest as f64, "/s"), bytes(fastest as f64, "/s"));
        let (moved, moved_si) = bytes(moved as f64, "");
        writeln!(
            out,
            "{:>7}: bw={whole} ({whole_si}), {slowest}-{fastest} ({slowest_si}-{fastest_si}), \
             io={moved} ({moved_si}), run={}-{}msec",
            way.name().to_uppercase(),
            shortest,
            longest
        )?;
    }
    Ok(())
}
