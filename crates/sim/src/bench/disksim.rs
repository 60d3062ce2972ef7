//! The measurements that DiskSim was validated with, run through a drive model.
//!
//! A line of such a trace is a request to a real disk: operation, cache action, sector, sectors,
//! service time and the gap to the next request, both in microseconds. The model is told what was
//! asked for and the gaps; request i + 1 arrives a gap after the *simulated* end of request i. What
//! the real disk took is only compared in the end.

use super::closed_loop::ClosedLoop;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::units::Duration;
use imbrex_drives::{DiskOptions, Drive, DriveError};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;

/// A request to a real disk and what it took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredRequest {
    /// Whether it wrote.
    pub is_write: bool,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
    /// Response time of the real disk.
    pub service_ms: f64,
    /// From its end to the next request.
    pub gap: Duration,
}

impl MeasuredRequest {
    /// The sector behind its last.
    fn end(&self) -> u64 {
        self.sector + self.sectors
    }
}

/// The requests of a validation trace, compressed with zstd or not.
///
/// # Errors
/// When the file cannot be read, or a line is none of these requests: file and line are named.
pub fn read_trace(path: &Path) -> Result<Vec<MeasuredRequest>, String> {
    let name = path.display();
    let open = || -> std::io::Result<String> {
        let mut text = String::new();
        let mut file = File::open(path)?;
        if path.extension().is_some_and(|extension| extension == "zst") {
            zstd::stream::read::Decoder::new(file)?.read_to_string(&mut text)?;
        } else {
            file.read_to_string(&mut text)?;
        }
        Ok(text)
    };
    let text = open().map_err(|error| format!("{name}: {error}"))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            parse_line(line).ok_or_else(|| {
                format!(
                    "{name}:{}: `{line}` is not R or W, cache action, sector, sectors, service and \
                     gap in microseconds",
                    index + 1
                )
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Option<MeasuredRequest> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let &[operation, _, sector, sectors, service_us, gap_us] = fields.as_slice() else {
        return None;
    };
    let us = |text: &str| text.parse::<f64>().ok().filter(|us| (0.0..1e12).contains(us));
    let sector: u64 = sector.parse().ok()?;
    let sectors = sectors.parse().ok().filter(|sectors| *sectors > 0)?;
    sector.checked_add(sectors)?;
    Some(MeasuredRequest {
        is_write: match operation {
            "R" => false,
            "W" => true,
            _ => return None,
        },
        sector,
        sectors,
        service_ms: us(service_us)? / 1e3,
        gap: Duration((us(gap_us)? * NS_PER_US).round() as u64),
    })
}

/// How a model's response times agree with the measured ones.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Agreement {
    /// Requests compared.
    pub requests: usize,
    /// Root mean square, over the quantiles, of model minus measurement: both sorted, then
    /// compared one by one.
    pub rms_ms: f64,
    /// Mean response of the model.
    pub model_mean_ms: f64,
    /// Mean response of the real disk.
    pub measured_mean_ms: f64,
}

impl Agreement {
    /// Of `(model, measured)` response times.
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Agreement {
        let (mut model, mut measured): (Vec<f64>, Vec<f64>) = pairs.unzip();
        model.sort_by(f64::total_cmp);
        measured.sort_by(f64::total_cmp);
        let count = model.len().max(1) as f64;
        let squares = model.iter().zip(&measured).map(|(a, b)| (a - b).powi(2));
        Agreement {
            requests: model.len(),
            rms_ms: (squares.sum::<f64>() / count).sqrt(),
            model_mean_ms: model.iter().sum::<f64>() / count,
            measured_mean_ms: measured.iter().sum::<f64>() / count,
        }
    }

    /// Mean of the model over the measured one, less 1.
    pub fn mean_error(&self) -> f64 {
        self.model_mean_ms / self.measured_mean_ms - 1.0
    }
}

/// A model against a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Validation {
    /// All requests.
    pub all: Agreement,
    /// Reads.
    pub reads: Agreement,
    /// Writes.
    pub writes: Agreement,
}

/// Runs the requests of `trace`, one at a time, on a disk of `drive`. The seed turns the spindle
/// at time 0.
///
/// # Errors
/// When no disk can be made of the drive, or a request goes past its end.
pub fn validate(
    drive: &Drive,
    trace: &[MeasuredRequest],
    seed: u64,
) -> Result<Validation, DriveError> {
    let options = DiskOptions { in_sectors: true, seed, ..DiskOptions::default() };
    let mut disk = ClosedLoop::new(drive, &options)?;
    let sectors = disk.blocks();
    if let Some(request) = trace.iter().find(|r| r.end() > sectors) {
        return Err(DriveError::Model {
            file: drive.file.clone(),
            reason: format!("has {sectors} sectors, and a request goes to {}", request.end()),
        });
    }
    let mut responses = Vec::with_capacity(trace.len());
    for request in trace {
        let operation = match request.is_write {
            true => Operation::WRITE,
            false => Operation::Read,
        };
        let response = disk.one(operation, Extent::new(request.sector, request.sectors));
        responses.push(response.0 as f64 / NS_PER_MS);
        disk.wait(request.gap);
    }
    let of = |wanted: &dyn Fn(&MeasuredRequest) -> bool| {
        let both = trace.iter().zip(&responses);
        Agreement::of(both.filter(|(r, _)| wanted(r)).map(|(r, ms)| (*ms, r.service_ms)))
    };
    Ok(Validation {
        all: of(&|_| true),
        reads: of(&|request| !request.is_write),
        writes: of(&|request| request.is_write),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request() {
        let request = parse_line("W Hit    4583176   4    663.00000  45422.50000").unwrap();
        let expected = MeasuredRequest {
            is_write: true,
            sector: 4_583_176,
            sectors: 4,
            service_ms: 0.663,
            gap: Duration(45_422_500),
        };
        assert_eq!(request, expected);
        for line in
            ["X Hit 1 4 6.0 7.0", "R Hit 1 0 6.0 7.0", "R Hit 1 4 6.0", "R Hit 1 4 -6.0 7.0"]
        {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_difference_is_taken_between_quantiles() {
        let pairs = [(3.0, 1.0), (1.0, 5.0), (2.0, 2.0)];
        let agreement = Agreement::of(pairs.into_iter());
        assert_eq!(agreement.requests, 3);
        assert!((agreement.rms_ms - (4.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((agreement.mean_error() - (6.0 / 8.0 - 1.0)).abs() < 1e-12);
    }
}
