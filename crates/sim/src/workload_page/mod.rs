//! What a trace is like, as one HTML page that needs nothing else.
//!
//! `imbrex trace info --html` writes it. The numbers are those of [`TraceInfo`]; this module only shows
//! them. A section that the trace says nothing about is left out.

mod axis;
mod blocks;
mod chart;
mod findings;
mod head;
mod lru_page;
mod method;
mod times;

use imbrex_traces::TraceInfo;
use serde::Serialize;

use chart::EmbeddedChart;
use imbrex_report::format::number;
use imbrex_report::page::{PackedHeatMap, document, json_in_page};

pub use lru_page::lru_page;

const SCRIPT: &str = include_str!("assets/workload.js");

/// The page while it is written.
#[derive(Default)]
struct Page {
    body: String,
    charts: Vec<EmbeddedChart>,
    heat: Vec<PackedHeatMap>,
}

/// What the script needs.
#[derive(Serialize)]
struct Embedded<'a> {
    charts: &'a [EmbeddedChart],
    heat: &'a [PackedHeatMap],
}

impl Page {
    /// Closes a section.
    fn close(&mut self) {
        self.body.push_str("</section>\n");
    }

    /// Puts what `fill` writes side by side where there is room.
    fn two(&mut self, fill: impl FnOnce(&mut Page)) {
        let before = self.body.len();
        self.body.push_str("<div class=\"two\">\n");
        let empty = self.body.len();
        fill(self);
        match self.body.len() == empty {
            true => self.body.truncate(before),
            false => self.body.push_str("</div>\n"),
        }
    }

    /// The whole document about the trace at `path`.
    fn finish(mut self, path: &str) -> String {
        self.body.push_str(
            "<footer>Written by Imbrex. This page holds all of its data and loads nothing.</footer>\n",
        );
        let data = json_in_page(&Embedded { charts: &self.charts, heat: &self.heat });
        document(&format!("imbrex: {path}"), &self.body, &data, SCRIPT)
    }
}

/// A share of `whole` things in per cent; a dash where there are none.
fn percent_of(whole: u64, percent: f64) -> String {
    match whole {
        0 => "-".to_string(),
        _ => format!("{} %", number(percent)),
    }
}

/// The page about a trace. `recipe` is the text of the recipe that a synthetic one was made from.
pub fn workload_page(info: &TraceInfo, recipe: Option<&str>) -> String {
    let mut page = Page::default();
    head::header(info, &mut page.body);
    head::verdicts(info, &mut page.body);
    head::cards(info, &mut page.body);
    page.two(|page| {
        blocks::sizes(info, page);
        blocks::lru(info, page);
    });
    page.two(|page| {
        times::requests(info, page);
        times::bytes(info, page);
    });
    times::working_set(info, &mut page);
    times::heat(info, &mut page);
    page.two(|page| {
        blocks::of_blocks_accessed(info, page);
        blocks::of_blocks_written(info, page);
    });
    page.two(|page| {
        times::gaps(info, page);
        times::intervals(info, page);
    });
    findings::section(info, &mut page.body);
    method::section(info, recipe, &mut page.body);
    page.finish(&info.path)
}
