//! The report as one HTML page that needs nothing else: no network, no second file.
//!
//! Line charts are drawn here as SVG, bars are HTML, the heat map is a canvas; a small script adds
//! read-outs, sorting and the choice of systems. Without the script everything but the heat map is
//! still there.

mod bars;
mod data;
mod lines;
mod sections;

use super::report::Report;

/// Runs drawn in the charts at most; the table shows all of them. More lines than this cannot be
/// told apart, and the page must stay small.
pub(super) const CHART_RUNS_MAX: usize = 24;

const PAGE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

impl Report {
    /// The page, complete; text from the report is escaped wherever it appears.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        sections::header(self, &mut body);
        sections::cards(self, &mut body);
        sections::comparison(self, &mut body);
        body.push_str("<div class=\"two\">\n");
        bars::io_time(self, &mut body);
        bars::write_amplification(self, &mut body);
        body.push_str("</div>\n");
        bars::segments(self, &mut body);
        lines::latency(self, &mut body);
        lines::throughput(self, &mut body);
        lines::persistent_cache_fill(self, &mut body);
        sections::heat_map(self, &mut body);
        sections::details(self, &mut body);
        // The pieces go in one by one so that nothing inside them is taken for a placeholder.
        let mut page = String::with_capacity(body.len() * 2);
        let mut rest = PAGE;
        while let Some(start) = rest.find("{{") {
            let end = start
                + rest[start..]
                    .find("}}")
                    .expect("the template closes its braces");
            page.push_str(&rest[..start]);
            match &rest[start + 2..end] {
                "title" => page.push_str(&escape(&format!("imbrex: {}", self.workload.path))),
                "style" => page.push_str(STYLE),
                "body" => page.push_str(&body),
                "data" => page.push_str(&data::embedded(self)),
                "script" => page.push_str(SCRIPT),
                other => panic!("unknown placeholder {other} in the template"),
            }
            rest = &rest[end + 2..];
        }
        page + rest
    }
}

/// `text` for element content and attribute values.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The style of the page, for other pages that should look alike.
pub(crate) fn page_style() -> &'static str {
    STYLE
}

/// The colour of run `index`, the same in every chart.
fn chip(index: usize) -> String {
    match index < CHART_RUNS_MAX {
        true => format!("<i class=\"chip\" style=\"background:var(--s{index})\"></i>"),
        false => String::new(),
    }
}

/// Opens a section: a heading and what the figure answers.
fn open_section(title: &str, why: &str, body: &mut String) {
    body.push_str(&format!(
        "<section>\n<div class=\"top\"><h2>{}</h2></div>\n<p class=\"why\">{}</p>\n",
        escape(title),
        escape(why)
    ));
}
