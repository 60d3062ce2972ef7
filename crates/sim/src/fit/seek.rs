//! Random small reads: the seek curve and the length of a revolution.

use super::FitError;
use super::log::Log;
use serde::Serialize;

/// Bins of distance, narrow where the curve is steep.
const BINS: usize = 40;
/// Reads a bin needs.
const READS_MIN: usize = 20;
/// In a bin only the angle differs, evenly over a revolution, so that nothing lies further above the upper
/// quartile than half the distance of the quartiles. What lies further than this share of it above met
/// something else: a retry, or a host that was late.
const LATE: f64 = 0.75;
/// What a command costs beside seek, rotation and transfer: *estimated*, as in the drive files.
const COMMAND_OVERHEAD_MS: f64 = 0.2;
/// Length of the innermost track over the outermost, without which an address has no radius:
/// *estimated*, usual on drives of all makers.
const INNER_OVER_OUTER: f64 = 0.5;
/// Rotation of drives that are sold.
const RPM: [f64; 7] = [5400.0, 5700.0, 5900.0, 5980.0, 7200.0, 10_000.0, 15_000.0];
/// Points of the table in the drive file.
const POINTS: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0];

/// Where the short seeks end and the long begin, and the curve on both sides: a + b sqrt(d) up to the
/// knee, straight from there on, with d the share of the full stroke.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeekFit {
    /// Length of a revolution, ms.
    pub revolution_ms: f64,
    /// The nearest rotation that is sold, if one is within 2 %.
    pub rpm: Option<f64>,
    /// a, ms.
    pub short_ms: f64,
    /// b, ms.
    pub root_ms: f64,
    /// Where the curve becomes straight, share of the stroke.
    pub knee: f64,
    /// Slope behind the knee, ms for the full stroke.
    pub slope_ms: f64,
    /// Mean over all pairs, as vendors state it.
    pub average_ms: f64,
    /// Root of the mean squared distance of the bins from the curve, ms.
    pub rms_ms: f64,
    /// Reads used.
    pub reads: usize,
}

/// Radius of an address as a share of the stroke from the outer edge, for tracks whose length falls
/// linearly with it.
fn radius(share: f64) -> f64 {
    // share = (r - r^2 (1 - q) / 2) / ((1 + q) / 2), solved for r.
    let (q, s) = (INNER_OVER_OUTER, share.clamp(0.0, 1.0));
    let k = 1.0 - q;
    (1.0 - (1.0 - k * (1.0 + q) * s).max(0.0).sqrt()) / k
}

struct Bin {
    distance: f64,
    latencies_ms: Vec<f64>,
}

impl SeekFit {
    /// The curve at a share of the full stroke, ms.
    pub fn at(&self, distance: f64) -> f64 {
        let short = distance.min(self.knee);
        self.short_ms + self.root_ms * short.sqrt() + self.slope_ms * (distance - short)
    }

    /// Points of the curve, as a drive file has them: thousandths of the stroke and ms.
    pub fn table(&self) -> Vec<(u64, f64)> {
        let points = POINTS.iter();
        points.map(|share| ((share * 1000.0).round() as u64, self.at(*share))).collect()
    }

    /// Fits a log of random small reads at queue depth 1.
    ///
    /// # Errors
    /// When there are too few.
    pub fn of(log: &Log, capacity_bytes: Option<u64>) -> Result<SeekFit, FitError> {
        let bins = bins_of(log, capacity_of(log, capacity_bytes)?);
        if bins.len() < BINS / 2 {
            let reason = format!(
                "{} reads reach {} of {BINS} ranges of distance; accepted: a few thousand reads over the \
                 whole drive",
                log.entries.len(),
                bins.len()
            );
            return Err(FitError::log(&log.path, reason));
        }
        let revolution_ms = revolution_ms(&bins).ok_or_else(|| {
            let reason = "too few reads of one distance to tell a revolution; accepted: a few thousand \
                          reads over the whole drive";
            FitError::log(&log.path, reason)
        })?;
        let points: Vec<_> = bins.iter().map(|bin| bin.point(revolution_ms)).collect();
        let knees = (2..=40).map(|step| f64::from(step) / 100.0);
        let fits = knees.filter_map(|knee| Some((knee, least_squares(&points, knee)?)));
        let (knee, ([short_ms, root_ms, slope_ms], rms_ms)) = fits
            .min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1))
            .ok_or_else(|| FitError::log(&log.path, "no curve fits these reads"))?;
        let mut fit = SeekFit {
            revolution_ms,
            rpm: nearest_rpm(revolution_ms),
            short_ms,
            root_ms,
            knee,
            slope_ms,
            average_ms: 0.0,
            rms_ms,
            reads: log.entries.len(),
        };
        fit.average_ms = fit.mean_ms();
        Ok(fit)
    }

    /// The mean of the curve over all pairs of places. The weight of a distance d is 2 (1 - d): pairs
    /// that far apart.
    fn mean_ms(&self) -> f64 {
        let steps = 1000;
        let mean = (0..steps).map(|i| {
            let d = (f64::from(i) + 0.5) / f64::from(steps);
            self.at(d) * 2.0 * (1.0 - d)
        });
        mean.sum::<f64>() / f64::from(steps)
    }
}

impl Bin {
    /// Its distance, its mean seek, ms, and its weight: how many reads it has. What a read takes
    /// beside its seek is half a revolution, in the mean, and the overhead of the command.
    fn point(&self, revolution_ms: f64) -> (f64, f64, f64) {
        let reads = self.latencies_ms.len() as f64;
        let mean = self.latencies_ms.iter().sum::<f64>() / reads;
        (self.distance, mean - revolution_ms / 2.0 - COMMAND_OVERHEAD_MS, reads)
    }
}

/// Bytes of the drive; where nobody says, as far as the reads go.
fn capacity_of(log: &Log, capacity_bytes: Option<u64>) -> Result<f64, FitError> {
    let ends = log.entries.iter().map(|entry| entry.offset + entry.bytes);
    let end = ends.max().unwrap_or(1);
    if let Some(capacity) = capacity_bytes.filter(|capacity| *capacity < end) {
        let reason = format!("reads go to byte {end}, beyond a capacity of {capacity}");
        return Err(FitError::log(&log.path, reason));
    }
    Ok(capacity_bytes.unwrap_or(end) as f64)
}

/// The rotation that is sold and nearest to a length of a revolution, if one is within 2 %.
fn nearest_rpm(revolution_ms: f64) -> Option<f64> {
    RPM.into_iter()
        .min_by(|a, b| {
            let off = |rpm: &f64| (60_000.0 / rpm - revolution_ms).abs();
            off(a).total_cmp(&off(b))
        })
        .filter(|rpm| (60_000.0 / rpm / revolution_ms - 1.0).abs() < 0.02)
}

fn bins_of(log: &Log, capacity: f64) -> Vec<Bin> {
    let mut bins: Vec<Vec<(f64, f64)>> = vec![Vec::new(); BINS];
    for pair in log.entries.windows(2) {
        let from = radius((pair[0].offset + pair[0].bytes) as f64 / capacity);
        let distance = (radius(pair[1].offset as f64 / capacity) - from).abs().min(1.0);
        let bin = ((distance.sqrt() * BINS as f64) as usize).min(BINS - 1);
        bins[bin].push((distance, pair[1].latency_ns as f64 / 1e6));
    }
    let full = bins.into_iter().filter(|bin| bin.len() >= READS_MIN);
    full.map(|mut bin| {
        bin.sort_by(|a, b| a.1.total_cmp(&b.1));
        let quartile = |number: usize| bin[(bin.len() - 1) * number / 4].1;
        let latest = quartile(3) + (quartile(3) - quartile(1)) * LATE;
        bin.retain(|(_, latency)| *latency <= latest);
        Bin {
            distance: bin.iter().map(|(distance, _)| distance).sum::<f64>() / bin.len() as f64,
            latencies_ms: bin.into_iter().map(|(_, latency)| latency).collect(),
        }
    })
    .collect()
}

/// In one bin only the angle differs, evenly over one revolution: the standard deviation of that is a
/// revolution over the root of 12. The median over the bins.
fn revolution_ms(bins: &[Bin]) -> Option<f64> {
    let mut found: Vec<f64> = bins
        .iter()
        .filter(|bin| bin.latencies_ms.len() >= 2 * READS_MIN)
        .map(|bin| {
            let count = bin.latencies_ms.len() as f64;
            let mean = bin.latencies_ms.iter().sum::<f64>() / count;
            let squares = bin.latencies_ms.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>();
            (squares / (count - 1.0) * 12.0).sqrt()
        })
        .collect();
    found.sort_by(f64::total_cmp);
    found.get(found.len() / 2).copied()
}

/// The three coefficients for a knee, and the weighted root mean squared error; `None` for a curve
/// that falls.
fn least_squares(points: &[(f64, f64, f64)], knee: f64) -> Option<([f64; 3], f64)> {
    let basis = |d: f64| [1.0, d.min(knee).sqrt(), (d - knee).max(0.0)];
    let mut matrix = [[0.0; 4]; 3];
    for (distance, time, weight) in points {
        let row = basis(*distance);
        let columns = [row[0], row[1], row[2], *time];
        for (line, left) in matrix.iter_mut().zip(row) {
            for (cell, right) in line.iter_mut().zip(columns) {
                *cell += weight * left * right;
            }
        }
    }
    // Gauss and Jordan: the matrix has three lines and, behind them, the right-hand side.
    for i in 0..3 {
        let pivot = (i..3).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-12 {
            return None;
        }
        for j in 0..3 {
            if i != j {
                let (pivot_row, factor) = (matrix[i], matrix[j][i] / matrix[i][i]);
                for (cell, above) in matrix[j].iter_mut().zip(pivot_row) {
                    *cell -= factor * above;
                }
            }
        }
    }
    let found: [f64; 3] = std::array::from_fn(|i| matrix[i][3] / matrix[i][i]);
    if found[0] < 0.0 || found[1] < 0.0 || found[2] < 0.0 {
        return None;
    }
    let (mut squares, mut weights) = (0.0, 0.0);
    for (distance, time, weight) in points {
        let fitted: f64 = basis(*distance).iter().zip(found).map(|(b, f)| b * f).sum();
        squares += weight * (fitted - time) * (fitted - time);
        weights += weight;
    }
    Some((found, (squares / weights).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::super::log::LogEntry;
    use super::*;
    use imbrex_core::rng::Rng;

    #[test]
    fn a_radius_runs_from_the_outer_to_the_inner_edge() {
        assert!(radius(0.0).abs() < 1e-9 && (radius(1.0) - 1.0).abs() < 1e-9);
        assert!(radius(0.5) < 0.5, "outer tracks hold more");
    }

    #[test]
    fn a_curve_comes_back_from_noisy_reads() {
        let truth = |d: f64| {
            if d < 0.15 { 1.0 + 17.0 * d.sqrt() } else { 5.5 + 14.0 * d }
        };
        let mut rng = Rng::new(3, 0);
        let capacity = 4_000_000_000_000u64;
        let mut at = 0u64;
        let entries: Vec<LogEntry> = (0..8000)
            .map(|_| {
                let offset = rng.below(capacity / 4096) * 4096;
                let share = |offset: u64| radius(offset as f64 / capacity as f64);
                let distance = (share(offset) - share(at)).abs();
                at = offset;
                let wait_ms = rng.below(10_000_000) as f64 / 1e6;
                // One in 50 is late for another reason.
                let late_ms = rng.below(50).checked_sub(49).map_or(0.0, |_| 30.0);
                LogEntry {
                    latency_ns: ((truth(distance) + wait_ms + late_ms + 0.2) * 1e6) as u64,
                    is_write: false,
                    bytes: 4096,
                    offset,
                }
            })
            .collect();
        let log = Log { path: "x.log".to_string(), entries };
        let fit = SeekFit::of(&log, Some(capacity)).unwrap();
        assert!((fit.revolution_ms / 10.0 - 1.0).abs() < 0.02, "{fit:?}");
        assert!(fit.rpm.is_none() || fit.rpm == Some(5980.0) || fit.rpm == Some(5900.0));
        for d in [0.01, 0.05, 0.2, 0.5, 0.9] {
            assert!((fit.at(d) / truth(d) - 1.0).abs() < 0.05, "{d}: {}", fit.at(d));
        }
    }
}
