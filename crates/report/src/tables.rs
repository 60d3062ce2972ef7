//! The tables of a report: one beside each figure, one of what the nodes have counted and one of each table that a
//! kind of node makes. As CSV files they are for gnuplot, pandas and the like.
//!
//! Every table starts its rows with the run; what is not defined is absent.

use super::activity_use::ResponseByActivity;
use super::columns::{Columns, response_columns};
use super::kind_tables::KindTable;
use super::node_table::Cell;
use super::phases::Phases;
use super::report::{Report, Run};
use super::segment_use::SEGMENT_METRICS;
use super::series::Series;
use imbrex_core::counters::declared;
use imbrex_core::operation::Cause;

impl Report {
    /// File names and contents: the tables as CSV.
    pub fn to_csv(&self) -> Vec<(String, String)> {
        let file = |(name, columns): (String, Columns)| (format!("{name}.csv"), columns.to_csv());
        self.tables().into_iter().map(file).collect()
    }

    /// The tables by name: the runs, one a figure, the counters of the nodes, then the tables of kinds of node.
    pub fn tables(&self) -> Vec<(String, Columns)> {
        let mut tables =
            vec![("results", self.results()), ("summary", self.summary()), ("io", self.io())];
        if !self.is_untimed() {
            tables.push(("latency", self.latency()));
            tables.push(("throughput", self.throughput()));
            tables.push(("responses", self.responses()));
            tables.push(("persistent_cache_fill", self.persistent_cache_fill()));
            tables.push(("band_writes", self.band_writes()));
            tables.push(("series", self.all_series()));
        }
        if self.has_segments() {
            tables.push(("segments", self.segments()));
        }
        if self.runs.iter().any(|run| run.movement.is_counted()) {
            tables.push(("movement", self.movement()));
        }
        if self.runs.iter().any(|run| run.phases.is_some()) {
            tables.push(("phases", self.phases()));
        }
        if self.runs.iter().any(|run| run.response_by_activity.is_some()) {
            tables.push(("activities", self.activities()));
            tables.push(("activity_series", self.activity_series()));
        }
        if self.runs.iter().any(|run| !run.windows.windows.is_empty()) {
            tables.push(("windows", self.windows()));
        }
        if self.runs.iter().any(|run| !run.figures.heads.dispatches.is_empty()) {
            tables.push(("heads", self.heads()));
        }
        if self.runs.iter().any(|run| !run.figures.rebuild_progress.is_empty()) {
            tables.push(("rebuild_progress", self.rebuild_progress()));
        }
        tables.push(("nodes", self.nodes()));
        let tables = tables.into_iter().map(|(name, table)| (name.to_string(), table));
        let kinds = self.kind_tables();
        tables.chain(kinds.iter().map(|table| (table.like.full_name(), of_kind(table)))).collect()
    }

    /// What every node has counted.
    fn nodes(&self) -> Columns {
        let mut rows = Columns::named("run,node,counter,unit,value");
        for run in &self.runs {
            for (node, counts) in &run.nodes {
                for (counter, value) in counts {
                    let unit = declared(counter).map_or("", |known| known.unit.name());
                    rows.text(&run.label()).text(node).text(counter).text(unit);
                    rows.integer(Some(*value)).end();
                }
            }
        }
        rows
    }

    /// Segments rewritten and the hits of the caches before them.
    fn segments(&self) -> Columns {
        let columns = SEGMENT_METRICS.iter().map(|metric| metric.csv);
        let mut rows = Columns::new(std::iter::once("run").chain(columns));
        for run in &self.runs {
            rows.text(&run.label());
            for metric in &SEGMENT_METRICS {
                rows.number((metric.value)(run));
            }
            rows.end();
        }
        rows
    }

    /// How far the heads of the disks were moved.
    fn movement(&self) -> Columns {
        let lists = ["discontinuities", "reversals"].iter();
        let lists =
            lists.flat_map(|of| ["block", "track", "band"].map(|unit| format!("{unit}_{of}")));
        let causes = Cause::ALL.iter().map(|cause| format!("{}_block", cause.name()));
        let columns: Vec<String> = lists.chain(causes).collect();
        let own =
            "run,disk,model,visits,block,track,band,updates,rewrites,rewritten_blocks,spilled";
        let mut rows = Columns::named(&format!("{own},{}", columns.join(",")));
        for run in &self.runs {
            for (disk, of) in run.movement.movement.iter().flatten() {
                rows.text(&run.label()).text(disk);
                let own = [u64::from(of.model), of.visits, of.block, of.track, of.band];
                let written = [of.updates, of.rewrites, of.rewritten_blocks, of.spilled];
                let lists = of.discontinuities.into_iter().chain(of.reversals);
                let causes = Cause::ALL.into_iter().map(|cause| of.by_cause[cause]);
                for value in own.into_iter().chain(written).chain(lists).chain(causes) {
                    rows.integer(Some(value));
                }
                rows.end();
            }
        }
        rows
    }

    /// How the host fared while arrays had lost members.
    fn phases(&self) -> Columns {
        let header = format!("run,phase,start_s,total_s,requests,{}", response_columns().join(","));
        let mut rows = Columns::named(&header);
        for run in &self.runs {
            for (phase, of) in run.phases.iter().flat_map(Phases::iter) {
                rows.text(&run.label()).text(phase.name());
                rows.number(Some(of.start_s)).number(Some(of.total_s)).integer(Some(of.requests));
                rows.response_times([of.response_ms, of.read_response_ms, of.write_response_ms]);
                rows.end();
            }
        }
        rows
    }

    /// The requests by what was on while they were open.
    fn activities(&self) -> Columns {
        let mut rows = Columns::named(&format!(
            "run,activity,total_s,requests,{}",
            response_columns().join(",")
        ));
        for run in &self.runs {
            for (name, of) in run.response_by_activity.iter().flat_map(ResponseByActivity::iter) {
                rows.text(&run.label()).text(name).number(of.total_s).integer(Some(of.requests));
                rows.response_times([of.response_ms, of.read_response_ms, of.write_response_ms]);
                rows.end();
            }
        }
        rows
    }

    /// What was on, and what requests felt, over time.
    fn activity_series(&self) -> Columns {
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
    fn windows(&self) -> Columns {
        let header = "run,window,requests,response_mean_ms,response_p50_ms,response_p99_ms,response_p99_9_ms,\
                      response_max_ms";
        let mut rows = Columns::named(header);
        for run in &self.runs {
            for window in &run.windows.windows {
                rows.text(&run.label()).text(&window.name).integer(Some(window.requests));
                let times = window.response_ms;
                for value in [times.mean, times.p50, times.p99, times.p99_9, times.max] {
                    rows.number(value);
                }
                rows.end();
            }
        }
        rows
    }

    /// The requests that went to disks in the time that was asked for.
    fn heads(&self) -> Columns {
        let header =
            "run,arrived_s,dispatched_s,disk,address_block,blocks,operation,area,cause,why";
        let mut rows = Columns::named(header);
        for run in &self.runs {
            for head in &run.figures.heads.dispatches {
                rows.text(&run.label())
                    .number(Some(head.arrived_s))
                    .number(Some(head.dispatched_s));
                rows.text(&head.disk).integer(Some(head.address_block)).integer(Some(head.blocks));
                rows.text(&head.operation).text(head.area.as_deref().unwrap_or_default());
                rows.text(&head.cause).text(&head.why);
                rows.end();
            }
        }
        rows
    }

    /// Every series of every run, whose buckets may differ: a row a value.
    fn all_series(&self) -> Columns {
        let mut rows = Columns::named("run,time_s,name,value");
        for run in &self.runs {
            for (name, series) in run.figures.all_series() {
                for (index, value) in series.values.iter().enumerate() {
                    rows.text(&run.label()).number(Some(index as f64 * series.bucket_s));
                    rows.text(&name).number(Some(*value)).end();
                }
            }
        }
        rows
    }

    /// How much of the members that were rebuilt was done.
    fn rebuild_progress(&self) -> Columns {
        let mut rows = Columns::named("run,node,time_s,progress");
        for run in &self.runs {
            for (name, series) in &run.figures.rebuild_progress {
                for (index, value) in series.values.iter().enumerate() {
                    rows.text(&run.label()).text(name);
                    rows.number(Some(index as f64 * series.bucket_s));
                    rows.number(Some(*value)).end();
                }
            }
        }
        rows
    }

    fn summary(&self) -> Columns {
        let mut rows = Columns::named(
            "run,system,requests,skipped_reads,read_blocks,write_blocks,read_hits,write_hits,\
             read_hit_ratio,write_hit_ratio,capacity_blocks,footprint_bytes,band_bytes_read,\
             band_bytes_written,bands_rewritten,scratch_bytes_written,\
             persistent_cache_bytes_appended,persistent_cache_bytes_merged,\
             persistent_cache_full_s,wa_evicted,wa_cache_in,wa_host,io_time_s,seek_time_s,\
             response_mean_ms,response_p50_ms,response_p99_ms,response_p99_9_ms,response_max_ms,\
             finish_s,dirty_blocks_left,forced_evictions",
        );
        for run in &self.runs {
            rows.text(&run.label()).text(&run.system);
            for count in [
                run.host.requests,
                run.host.skipped_reads,
                run.host.read_blocks,
                run.host.write_blocks,
                run.hits.read_hits,
                run.hits.write_hits,
            ] {
                rows.integer(Some(count));
            }
            rows.number(run.hits.read_hit_ratio).number(run.hits.write_hit_ratio);
            rows.integer(run.cache.capacity_blocks).integer(run.inputs.footprint_bytes);
            for count in [
                run.rewrites.band_bytes_read,
                run.rewrites.band_bytes_written,
                run.rewrites.bands_rewritten,
                run.log.scratch_bytes_written,
                run.log.persistent_cache_bytes_appended,
                run.log.persistent_cache_bytes_merged,
            ] {
                rows.integer(Some(count));
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
                rows.number(value);
            }
            rows.integer(Some(run.cache.dirty_blocks_left))
                .integer(Some(run.cache.forced_evictions))
                .end();
        }
        rows
    }

    fn io(&self) -> Columns {
        let mut rows =
            Columns::named("run,disk,cause,busy_s,read_bytes,written_bytes,write_amplification");
        for run in &self.runs {
            for disk in &run.disks {
                for cause in Cause::ALL {
                    rows.text(&run.label()).text(&disk.name).text(cause.name());
                    rows.number(run.time(disk.busy_time_by_cause_s[cause]));
                    rows.integer(Some(disk.read_bytes[cause]));
                    rows.integer(Some(disk.written_bytes[cause]));
                    rows.number(disk.write_amplification[cause]).end();
                }
            }
        }
        rows
    }

    fn latency(&self) -> Columns {
        let mut rows = Columns::named("run,response_ms,tail");
        for run in &self.runs {
            let cdf = &run.figures.latency_cdf;
            for (ms, tail) in cdf.ms.iter().zip(&cdf.tail) {
                rows.text(&run.label()).number(Some(*ms)).number(Some(*tail)).end();
            }
        }
        rows
    }

    fn throughput(&self) -> Columns {
        self.series("run,time_s,read_mib_per_s,write_mib_per_s,requests_per_s", |run| {
            let figures = &run.figures;
            vec![&figures.read_mib_per_s, &figures.write_mib_per_s, &figures.requests_per_s]
        })
    }

    /// What reads and writes took over time, and how many requests were under way.
    fn responses(&self) -> Columns {
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

    fn persistent_cache_fill(&self) -> Columns {
        self.series("run,time_s,fill", |run| vec![&run.figures.persistent_cache_fill])
    }

    /// Series of one run share their buckets.
    fn series(&self, header: &str, columns: impl Fn(&Run) -> Vec<&Series>) -> Columns {
        let mut rows = Columns::named(header);
        for run in &self.runs {
            let columns = columns(run);
            let Some(first) = columns.first() else {
                continue;
            };
            for i in 0..first.values.len() {
                rows.text(&run.label()).number(Some(i as f64 * first.bucket_s));
                for column in &columns {
                    rows.number(column.values.get(i).copied());
                }
                rows.end();
            }
        }
        rows
    }

    fn band_writes(&self) -> Columns {
        let mut rows = Columns::named("run,first_block,bin_blocks,time_s,bin_s,blocks_written");
        for run in &self.runs {
            let map = &run.figures.band_writes;
            let columns = map.time_bins.max(1) as usize;
            for (i, blocks) in map.blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
                let (row, column) = ((i / columns) as u64, i % columns);
                rows.text(&run.label());
                rows.integer(Some(map.lba_first_block + row * map.lba_bin_blocks));
                rows.integer(Some(map.lba_bin_blocks));
                rows.number(Some(column as f64 * map.time_bin_s)).number(Some(map.time_bin_s));
                rows.integer(Some(u64::from(*blocks))).end();
            }
        }
        rows
    }
}

/// The tables of one name of all nodes of a kind.
fn of_kind(table: &KindTable<'_>) -> Columns {
    let columns = table.like.columns.iter().map(|column| column.name.as_str());
    let mut rows = Columns::new(["run", "node"].into_iter().chain(columns));
    for (_, run, table) in &table.of_nodes {
        for row in &table.rows {
            rows.text(&run.label()).text(&table.node);
            for cell in row {
                match cell {
                    Cell::Text(text) => rows.text(text),
                    Cell::Count(count) => rows.integer(Some(*count)),
                    Cell::Number(_) | Cell::Absent => rows.number(cell.as_number()),
                };
            }
            rows.end();
        }
    }
    rows
}
