//! The page of a sweep that was made as jobs, of which some may be missing still.

use super::html::{matrix, pareto, swept};
use super::report::Report;
use super::results::word;
use crate::page::{escape, open_scroll, open_section, reloading_document};
use std::fmt::Write as _;

/// Names at most of what failed and of what is missing; more are counted.
const NAMED_MAX: usize = 20;

/// What a page of a sweep shows.
#[derive(Debug)]
pub struct SweepPage {
    /// What it is called.
    pub title: String,
    /// How many jobs the sweep has.
    pub jobs: usize,
    /// Jobs that failed: their names, and why.
    pub failed: Vec<(String, String)>,
    /// Names of the jobs that are not made.
    pub missing: Vec<String>,
    /// The runs by workload. What the figures of a single run are drawn from is not needed.
    pub workloads: Vec<Report>,
    /// Workloads and runs that are not among these, because a page has no room for more.
    pub not_shown: (usize, usize),
    /// After so many seconds a browser loads the page again; none when it does not change any more.
    pub reload_after_s: Option<u32>,
}

impl SweepPage {
    /// The page, complete; texts are escaped.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<header><p class=\"eyebrow\">imbrex sweep</p><h1>{}</h1>",
            escape(&self.title)
        );
        self.progress(&mut body);
        body.push_str("</header>\n");
        for report in &self.workloads {
            let path = escape(&report.workload.path);
            let _ = writeln!(
                body,
                "<h2 style=\"margin-top:34px;font-size:21px\">{path}</h2>\n<p>{} workload, {} runs.</p>",
                escape(&word(report.workload.kind)),
                report.runs.len()
            );
            pareto::of_runs(report, &mut body);
            matrix::of_pairs(report, &mut body);
            swept::over_keys(report, &mut body);
        }
        if let (workloads, runs @ 1..) = self.not_shown {
            let _ = writeln!(
                body,
                "<p>{runs} more runs of {workloads} more workloads are in results.parquet.</p>"
            );
        }
        self.failures(&mut body);
        reloading_document(&self.title, self.reload_after_s, &body)
    }

    fn progress(&self, body: &mut String) {
        let made = self.jobs - self.missing.len();
        let _ = writeln!(
            body,
            "<p>{made} of {} jobs made, {} of them failed.</p>\n<progress max=\"{}\" value=\"{made}\" style=\"width:100%\"></progress>",
            self.jobs,
            self.failed.len(),
            self.jobs.max(1)
        );
        if self.missing.is_empty() {
            return;
        }
        let left = self.missing.len();
        if self.reload_after_s.is_some() {
            let _ = writeln!(
                body,
                "<p class=\"notice\" id=\"left\">{left} jobs are to be made; the page loads itself again.</p>"
            );
            return;
        }
        let _ = write!(
            body,
            "<p class=\"notice\" id=\"left\">Not the whole sweep; {left} jobs are not made."
        );
        for name in self.missing.iter().take(NAMED_MAX) {
            let _ = write!(body, "<br>{}", escape(name));
        }
        if let Some(more @ 1..) = self.missing.len().checked_sub(NAMED_MAX) {
            let _ = write!(body, "<br>and {more} more");
        }
        body.push_str("</p>\n");
    }

    fn failures(&self, body: &mut String) {
        if self.failed.is_empty() {
            return;
        }
        let why = "Each is a row of the table, with its message and without figures.";
        open_section("Jobs that failed", why, body);
        open_scroll("jobs that failed", body);
        body.push_str("<table><thead><tr><th>job</th><th>why</th></tr></thead><tbody>\n");
        for (job, error) in self.failed.iter().take(NAMED_MAX) {
            let (job, error) = (escape(job), escape(error));
            let _ = writeln!(
                body,
                "<tr><th>{job}</th><td style=\"text-align:left;white-space:normal\">{error}</td></tr>"
            );
        }
        body.push_str("</tbody></table></div>\n");
        if let Some(more @ 1..) = self.failed.len().checked_sub(NAMED_MAX) {
            let _ = writeln!(body, "<p>and {more} more</p>");
        }
        body.push_str("</section>\n");
    }
}
