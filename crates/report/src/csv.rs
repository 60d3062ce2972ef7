//! One CSV file beside each figure, one of what the nodes have counted and one of each table that a
//! kind of node makes, for gnuplot, pandas and the like.
//!
//! Every file has a header line and starts its rows with the run; undefined numbers are empty.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::activity_use::ResponseByActivity;
use super::kind_tables::KindTable;
use super::node_table::Cell;
use super::phases::Phases;
use super::report::{Report, Run};
use super::response_times::ResponseTimes;
use super::segment_use::SEGMENT_METRICS;
use super::series::Series;
use imbrex_core::counters::declared;
use imbrex_core::operation::Cause;

impl Report {
    /// File names and contents: a summary of the runs, one file a figure, the counters of the nodes, then
    /// the tables of kinds of node.
    pub fn to_csv(&self) -> Vec<(String, String)> {
        let mut files = vec![
            ("results.csv", self.results()),
            ("summary.csv", self.summary()),
            ("io.csv", self.io()),
        ];
        if !self.is_untimed() {
            files.push(("latency.csv", self.latency()));
            files.push(("throughput.csv", self.throughput()));
            files.push(("responses.csv", self.responses()));
            files.push(("persistent_cache_fill.csv", self.persistent_cache_fill()));
            files.push(("band_writes.csv", self.band_writes()));
            files.push(("series.csv", self.all_series()));
        }
        if self.has_segments() {
            files.push(("segments.csv", self.segments()));
        }
        if self.runs.iter().any(|run| run.movement.is_counted()) {
            files.push(("movement.csv", self.movement()));
        }
        if self.runs.iter().any(|run| run.phases.is_some()) {
            files.push(("phases.csv", self.phases()));
        }
        if self.runs.iter().any(|run| run.response_by_activity.is_some()) {
            files.push(("activities.csv", self.activities()));
            files.push(("activity_series.csv", self.activity_series()));
        }
        if self.runs.iter().any(|run| !run.windows.windows.is_empty()) {
            files.push(("windows.csv", self.windows()));
        }
        if self.runs.iter().any(|run| !run.figures.heads.dispatches.is_empty()) {
            files.push(("heads.csv", self.heads()));
        }
        if self.runs.iter().any(|run| !run.figures.rebuild_progress.is_empty()) {
            files.push(("rebuild_progress.csv", self.rebuild_progress()));
        }
        files.push(("nodes.csv", self.nodes()));
        let files = files.into_iter().map(|(name, text)| (name.to_string(), text));
        let tables = self.kind_tables();
        files.chain(tables.iter().map(|table| (table.like.file(), of_kind(table)))).collect()
    }

    /// What every node has counted.
    fn nodes(&self) -> String {
        let mut csv = Csv::new("run,node,counter,unit,value");
        for run in &self.runs {
            for (node, counts) in &run.nodes {
                for (counter, value) in counts {
                    let unit = declared(counter).map_or("", |known| known.unit.name());
                    csv.text(&run.label()).text(node).text(counter).text(unit);
                    csv.integer(Some(*value)).end();
                }
            }
        }
        csv.text
    }

    /// Segments rewritten and the hits of the caches before them.
    fn segments(&self) -> String {
        let columns = SEGMENT_METRICS.iter().map(|metric| metric.csv);
        let header: Vec<&str> = std::iter::once("run").chain(columns).collect();
        let mut csv = Csv::new(&header.join(","));
        for run in &self.runs {
            csv.text(&run.label());
            for metric in &SEGMENT_METRICS {
                csv.number((metric.value)(run));
            }
            csv.end();
        }
        csv.text
    }

    /// How far the heads of the disks were moved.
    fn movement(&self) -> String {
        let lists = ["discontinuities", "reversals"].iter();
        let lists =
            lists.flat_map(|of| ["block", "track", "band"].map(|unit| format!("{unit}_{of}")));
        let causes = Cause::ALL.iter().map(|cause| format!("{}_block", cause.name()));
        let columns: Vec<String> = lists.chain(causes).collect();
        let own =
            "run,disk,model,visits,block,track,band,updates,rewrites,rewritten_blocks,spilled";
        let mut csv = Csv::new(&format!("{own},{}", columns.join(",")));
        for run in &self.runs {
            for (disk, of) in run.movement.movement.iter().flatten() {
                csv.text(&run.label()).text(disk);
                let own = [u64::from(of.model), of.visits, of.block, of.track, of.band];
                let written = [of.updates, of.rewrites, of.rewritten_blocks, of.spilled];
                let lists = of.discontinuities.into_iter().chain(of.reversals);
                let causes = Cause::ALL.into_iter().map(|cause| of.by_cause[cause]);
                for value in own.into_iter().chain(written).chain(lists).chain(causes) {
                    csv.integer(Some(value));
                }
                csv.end();
            }
        }
        csv.text
    }

    /// How the host fared while arrays had lost members.
    fn phases(&self) -> String {
        let header = format!("run,phase,start_s,total_s,requests,{}", response_columns());
        let mut csv = Csv::new(&header);
        for run in &self.runs {
            for (phase, of) in run.phases.iter().flat_map(Phases::iter) {
                csv.text(&run.label()).text(phase.name());
                csv.number(Some(of.start_s)).number(Some(of.total_s)).integer(Some(of.requests));
                csv.response_times([of.response_ms, of.read_response_ms, of.write_response_ms]);
                csv.end();
            }
        }
        csv.text
    }

    /// The requests by what was on while they were open.
    fn activities(&self) -> String {
        let mut csv = Csv::new(&format!("run,activity,total_s,requests,{}", response_columns()));
        for run in &self.runs {
            for (name, of) in run.response_by_activity.iter().flat_map(ResponseByActivity::iter) {
                csv.text(&run.label()).text(name).number(of.total_s).integer(Some(of.requests));
                csv.response_times([of.response_ms, of.read_response_ms, of.write_response_ms]);
                csv.end();
            }
        }
        csv.text
    }

    /// What was on, and what requests felt, over time.
    fn activity_series(&self) -> String {
        let header = "run,time_s,hold,blocking_cleaning,idle_cleaning,held_requests,response_mean_ms,\
                      response_max_ms";
        self.series(header, |run| {
            run.figures.activities.as_ref().map_or(vec![], |of| {
                vec![
                    &of.hold,
                    &of.blocking_cleaning,
                    &of.idle_cleaning,
                    &of.held_requests,
                    &of.response_mean_ms,
                    &of.response_max_ms,
                ]
            })
        })
    }

    /// What was asked of each window of a device.
    fn windows(&self) -> String {
        let header = "run,window,requests,response_mean_ms,response_p50_ms,response_p99_ms,response_p99_9_ms,\
                      response_max_ms";
        let mut csv = Csv::new(header);
        for run in &self.runs {
            for window in &run.windows.windows {
                csv.text(&run.label()).text(&window.name).integer(Some(window.requests));
                let times = window.response_ms;
                for value in [times.mean, times.p50, times.p99, times.p99_9, times.max] {
                    csv.number(value);
                }
                csv.end();
            }
        }
        csv.text
    }

    /// The requests that went to disks in the time that was asked for.
    fn heads(&self) -> String {
        let header =
            "run,arrived_s,dispatched_s,disk,address_block,blocks,operation,area,cause,why";
        let mut csv = Csv::new(header);
        for run in &self.runs {
            for head in &run.figures.heads.dispatches {
                csv.text(&run.label()).number(Some(head.arrived_s)).number(Some(head.dispatched_s));
                csv.text(&head.disk).integer(Some(head.address_block)).integer(Some(head.blocks));
                csv.text(&head.operation).text(head.area.as_deref().unwrap_or_default());
                csv.text(&head.cause).text(&head.why);
                csv.end();
            }
        }
        csv.text
    }

    /// Every series of every run, whose buckets may differ: a row a value.
    fn all_series(&self) -> String {
        let mut csv = Csv::new("run,time_s,name,value");
        for run in &self.runs {
            for (name, series) in run.figures.all_series() {
                for (index, value) in series.values.iter().enumerate() {
                    csv.text(&run.label()).number(Some(index as f64 * series.bucket_s));
                    csv.text(&name).number(Some(*value)).end();
                }
            }
        }
        csv.text
    }

    /// How much of the members that were rebuilt was done.
    fn rebuild_progress(&self) -> String {
        let mut csv = Csv::new("run,node,time_s,progress");
        for run in &self.runs {
            for (name, series) in &run.figures.rebuild_progress {
                for (index, value) in series.values.iter().enumerate() {
                    csv.text(&run.label()).text(name);
                    csv.number(Some(index as f64 * series.bucket_s));
                    csv.number(Some(*value)).end();
                }
            }
        }
        csv.text
    }

    fn summary(&self) -> String {
        let mut csv = Csv::new(
            "run,system,requests,skipped_reads,read_blocks,write_blocks,read_hits,write_hits,\
             read_hit_ratio,write_hit_ratio,capacity_blocks,footprint_bytes,band_bytes_read,\
             band_bytes_written,bands_rewritten,scratch_bytes_written,\
             persistent_cache_bytes_appended,persistent_cache_bytes_merged,\
             persistent_cache_full_s,wa_evicted,wa_cache_in,wa_host,io_time_s,seek_time_s,\
             response_mean_ms,response_p50_ms,response_p99_ms,response_p99_9_ms,response_max_ms,\
             finish_s,dirty_blocks_left,forced_evictions",
        );
        for run in &self.runs {
            csv.text(&run.label()).text(&run.system);
            for count in [
                run.host.requests,
                run.host.skipped_reads,
                run.host.read_blocks,
                run.host.write_blocks,
                run.hits.read_hits,
                run.hits.write_hits,
            ] {
                csv.integer(Some(count));
            }
            csv.number(run.hits.read_hit_ratio).number(run.hits.write_hit_ratio);
            csv.integer(run.cache.capacity_blocks).integer(run.inputs.footprint_bytes);
            for count in [
                run.rewrites.band_bytes_read,
                run.rewrites.band_bytes_written,
                run.rewrites.bands_rewritten,
                run.log.scratch_bytes_written,
                run.log.persistent_cache_bytes_appended,
                run.log.persistent_cache_bytes_merged,
            ] {
                csv.integer(Some(count));
            }
            let (amplification, response) =
                (run.rewrites.write_amplification, run.costs.response_ms);
            for value in [
                run.time(run.log.persistent_cache_full_s),
                amplification.evicted,
                amplification.cache_in,
                amplification.host,
                run.time(run.costs.io_time_s.total),
                run.time(run.costs.seek_time_s),
                response.mean,
                response.p50,
                response.p99,
                response.p99_9,
                response.max,
                run.time(run.costs.finish_s),
            ] {
                csv.number(value);
            }
            csv.integer(Some(run.cache.dirty_blocks_left))
                .integer(Some(run.cache.forced_evictions))
                .end();
        }
        csv.text
    }

    fn io(&self) -> String {
        let mut csv =
            Csv::new("run,disk,cause,busy_s,read_bytes,written_bytes,write_amplification");
        for run in &self.runs {
            for disk in &run.disks {
                for cause in Cause::ALL {
                    csv.text(&run.label()).text(&disk.name).text(cause.name());
                    csv.number(run.time(disk.busy_time_by_cause_s[cause]));
                    csv.integer(Some(disk.read_bytes[cause]));
                    csv.integer(Some(disk.written_bytes[cause]));
                    csv.number(disk.write_amplification[cause]).end();
                }
            }
        }
        csv.text
    }

    fn latency(&self) -> String {
        let mut csv = Csv::new("run,response_ms,tail");
        for run in &self.runs {
            let cdf = &run.figures.latency_cdf;
            for (ms, tail) in cdf.ms.iter().zip(&cdf.tail) {
                csv.text(&run.label()).number(Some(*ms)).number(Some(*tail)).end();
            }
        }
        csv.text
    }

    fn throughput(&self) -> String {
        self.series("run,time_s,read_mib_per_s,write_mib_per_s,requests_per_s", |run| {
            let figures = &run.figures;
            vec![&figures.read_mib_per_s, &figures.write_mib_per_s, &figures.requests_per_s]
        })
    }

    /// What reads and writes took over time, and how many requests were under way.
    fn responses(&self) -> String {
        let header = "run,time_s,requests_under_way,read_p50_ms,read_p99_ms,read_max_ms,write_p50_ms,write_p99_ms,write_max_ms";
        self.series(header, |run| {
            let of = &run.figures.responses;
            vec![
                &run.figures.requests_under_way,
                &of.read_p50_ms,
                &of.read_p99_ms,
                &of.read_max_ms,
                &of.write_p50_ms,
                &of.write_p99_ms,
                &of.write_max_ms,
            ]
        })
    }

    fn persistent_cache_fill(&self) -> String {
        self.series("run,time_s,fill", |run| vec![&run.figures.persistent_cache_fill])
    }

    /// Series of one run share their buckets.
    fn series(&self, header: &str, columns: impl Fn(&Run) -> Vec<&Series>) -> String {
        let mut csv = Csv::new(header);
        for run in &self.runs {
            let columns = columns(run);
            let Some(first) = columns.first() else {
                continue;
            };
            for i in 0..first.values.len() {
                csv.text(&run.label()).number(Some(i as f64 * first.bucket_s));
                for column in &columns {
                    csv.number(column.values.get(i).copied());
                }
                csv.end();
            }
        }
        csv.text
    }

    fn band_writes(&self) -> String {
        let mut csv = Csv::new("run,first_block,bin_blocks,time_s,bin_s,blocks_written");
        for run in &self.runs {
            let map = &run.figures.band_writes;
            let columns = map.time_bins.max(1) as usize;
            for (i, blocks) in map.blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
                let (row, column) = ((i / columns) as u64, i % columns);
                csv.text(&run.label());
                csv.integer(Some(map.lba_first_block + row * map.lba_bin_blocks));
                csv.integer(Some(map.lba_bin_blocks));
                csv.number(Some(column as f64 * map.time_bin_s)).number(Some(map.time_bin_s));
                csv.integer(Some(u64::from(*blocks))).end();
            }
        }
        csv.text
    }
}

/// The tables of one name of all nodes of a kind.
fn of_kind(table: &KindTable<'_>) -> String {
    let columns = table.like.columns.iter().map(|column| column.name.as_str());
    let header: Vec<&str> = ["run", "node"].into_iter().chain(columns).collect();
    let mut csv = Csv::new(&header.join(","));
    for (_, run, table) in &table.of_nodes {
        for row in &table.rows {
            csv.text(&run.label()).text(&table.node);
            for cell in row {
                match cell {
                    Cell::Text(text) => csv.text(text),
                    Cell::Count(count) => csv.integer(Some(*count)),
                    Cell::Number(_) | Cell::Absent => csv.number(cell.as_number()),
                };
            }
            csv.end();
        }
    }
    csv.text
}

/// Columns of the response times of all requests, of the reads and of the writes.
pub(super) fn response_columns() -> String {
    let columns = ["response", "read_response", "write_response"].iter().flat_map(|which| {
        ["mean", "p50", "p99", "p99_9", "p99_99", "max"].map(|of| format!("{which}_{of}_ms"))
    });
    columns.collect::<Vec<_>>().join(",")
}

/// A cell of text, in quotes where it needs them.
pub fn csv_cell(value: &str) -> Cow<'_, str> {
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")).into(),
        false => value.into(),
    }
}

/// A table that grows cell by cell.
pub(super) struct Csv {
    /// What there is of it.
    pub text: String,
    line_is_empty: bool,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv { text: String::new(), line_is_empty: true }
    }
}

impl Csv {
    /// A table with a header.
    fn new(header: &str) -> Csv {
        Csv { text: format!("{header}\n"), line_is_empty: true }
    }

    fn separate(&mut self) {
        if !self.line_is_empty {
            self.text.push(',');
        }
        self.line_is_empty = false;
    }

    /// A cell of text.
    pub fn text(&mut self, value: &str) -> &mut Csv {
        self.separate();
        self.text.push_str(&csv_cell(value));
        self
    }

    /// A cell of a number, empty where there is none.
    pub fn number(&mut self, value: Option<f64>) -> &mut Csv {
        self.separate();
        if let Some(value) = value {
            let _ = write!(self.text, "{value}");
        }
        self
    }

    /// What [`response_columns`] names.
    pub fn response_times(&mut self, all_reads_writes: [ResponseTimes; 3]) {
        for times in all_reads_writes {
            for value in [times.mean, times.p50, times.p99, times.p99_9, times.p99_99, times.max] {
                self.number(value);
            }
        }
    }

    /// The same of a whole number.
    pub fn integer(&mut self, value: Option<u64>) -> &mut Csv {
        self.separate();
        if let Some(value) = value {
            let _ = write!(self.text, "{value}");
        }
        self
    }

    /// Ends a row.
    pub fn end(&mut self) {
        self.text.push('\n');
        self.line_is_empty = true;
    }
}
