//! The report as one HTML page that needs nothing else: no network, no second file.
//!
//! Line charts are drawn here as SVG, bars are HTML, the heat map is a canvas; a small script adds
//! read-outs, sorting and the choice of systems. Without the script everything but the heat map is
//! still there.

mod activities;
mod bars;
mod counters;
mod data;
mod heads;
mod lines;
pub(super) mod matrix;
pub(super) mod pareto;
mod phases;
mod responses;
mod sections;
mod strips;
pub(super) mod swept;
mod tables;
mod windows;

use super::report::Report;
use crate::page::document;

const SCRIPT: &str = include_str!("../assets/report.js");

impl Report {
    /// The table of the comparison alone, as a piece of HTML for a page of somebody else.
    pub fn comparison_html(&self) -> String {
        sections::plain_comparison(self)
    }

    /// The page, complete; text from the report is escaped wherever it appears.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        sections::header(self, &mut body);
        sections::cards(self, &mut body);
        sections::comparison(self, &mut body);
        swept::over_keys(self, &mut body);
        matrix::of_pairs(self, &mut body);
        pareto::of_runs(self, &mut body);
        body.push_str("<div class=\"two\">\n");
        if !self.is_untimed() {
            bars::io_time(self, &mut body);
        }
        bars::write_amplification(self, &mut body);
        body.push_str("</div>\n");
        bars::movement(self, &mut body);
        bars::segments(self, &mut body);
        if !self.is_untimed() {
            lines::latency(self, &mut body);
            responses::over_time(self, &mut body);
            strips::under_way(self, &mut body);
            strips::throughput(self, &mut body);
            strips::persistent_cache_fill(self, &mut body);
        }
        activities::of_nodes(self, &mut body);
        phases::of_arrays(self, &mut body);
        windows::of_devices(self, &mut body);
        heads::of_disks(self, &mut body);
        sections::heat_map(self, &mut body);
        tables::of_kinds(self, &mut body);
        counters::of_nodes(self, &mut body);
        sections::details(self, &mut body);
        document(&format!("imbrex: {}", self.workload.path), &body, &data::embedded(self), SCRIPT)
    }
}
