//! The characteristics as a table for people.

use std::fmt;

use super::info::{DirectionInfo, TraceInfo};

impl fmt::Display for TraceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what_it_is = self.rows_of_the_trace();
        let all = what_it_is.into_iter().chain(self.rows_of_requests());
        let all = all.chain(self.rows_of_blocks()).chain(self.rows_of_method());
        for (name, value) in all {
            writeln!(f, "{name:<22}{value}")?;
        }
        writeln!(f, "suits, from the trace alone")?;
        for verdict in &self.sections.verdicts {
            writeln!(f, "  {:<22}{}", verdict.drive.word(), verdict.verdict.word())?;
        }
        Ok(())
    }
}

/// A name and what is said of it.
type Row = (&'static str, String);

impl TraceInfo {
    /// What the trace is, and how long.
    fn rows_of_the_trace(&self) -> Vec<Row> {
        let mut rows = vec![
            ("trace", self.path.clone()),
            ("workload", format!("{} ({})", self.kind, self.label)),
            ("format", self.detected.clone()),
        ];
        let sha256 = self.sha256.iter();
        rows.extend(sha256.map(|sha256| ("sha256", sha256.clone())));
        let duration = |seconds: f64| format!("{seconds:.3} s ({:.2} days)", seconds / 86_400.0);
        rows.extend([
            ("requests", format!("{} on {} device(s)", self.requests, self.devices)),
            (
                "duration",
                self.duration_s.map_or_else(|| "no times in this format".to_owned(), duration),
            ),
        ]);
        rows
    }

    /// The requests by kind.
    fn rows_of_requests(&self) -> Vec<Row> {
        let mut rows = vec![("reads", self.read.described()), ("writes", self.write.described())];
        if self.trims + self.flushes + self.fua > 0 {
            rows.push((
                "other",
                format!(
                    "{} trims, {} flushes, {} with forced unit access",
                    self.trims, self.flushes, self.fua
                ),
            ));
        }
        rows.extend([
            ("write share", format!("{:.2} % of reads and writes", self.write_percent)),
            ("updates", format!("{} ({:.2} % of the writes)", self.updates, self.update_percent)),
        ]);
        rows
    }

    /// How it was counted.
    fn rows_of_method(&self) -> Vec<Row> {
        let methods = &self.sections.methods;
        let groups = [
            ("distinct and updates", &methods.distinct),
            ("reuse and hot blocks", &methods.blocks),
        ];
        if groups.iter().all(|group| group.1.sampled_one_in == 1) {
            return vec![("counted", "exactly".to_owned())];
        }
        groups.map(|(name, method)| (name, method.described())).into()
    }

    /// What of the device was touched, and what was odd about it.
    fn rows_of_blocks(&self) -> [Row; 6] {
        let counts = &self.counts;
        [
            (
                "blocks of 4 KiB",
                format!(
                    "{} read, {} written, {} distinct ({:.3} % of them written, {:.3} % updated)",
                    self.read.blocks,
                    self.write.blocks,
                    self.unique_blocks,
                    self.written_blocks_percent,
                    self.updated_blocks_percent
                ),
            ),
            (
                "accessed",
                format!(
                    "{:.4} GB distinct, up to byte {}",
                    self.unique_bytes as f64 / 1e9,
                    self.footprint_bytes
                ),
            ),
            (
                "bands of 18 MiB",
                format!(
                    "{:.2} GiB written, {:.2} GiB accessed",
                    gib(self.written_band_bytes),
                    gib(self.accessed_band_bytes)
                ),
            ),
            (
                "out of sequence",
                format!("{:.2} % do not start where the previous ended", self.random_percent),
            ),
            ("skipped lines", counts.skipped.to_string()),
            (
                "oddities",
                format!(
                    "{} time inversions, {} requests unaligned to 512 B, {} to 4 KiB",
                    counts.time_inversions, counts.unaligned_to_sector, counts.unaligned_to_block
                ),
            ),
        ]
    }
}

impl DirectionInfo {
    fn described(&self) -> String {
        let DirectionInfo { requests, bytes, mean_bytes, median_bytes, unique_bytes, .. } = self;
        format!(
            "{requests}, {:.3} GiB, {:.3} GiB distinct, mean {mean_bytes:.0} B, median {median_bytes} B",
            gib(*bytes),
            gib(*unique_bytes)
        )
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}
