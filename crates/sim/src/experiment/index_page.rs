//! Figures beside the papers', as one HTML page.

use super::stated::Row;
use crate::basis::{Basis, Tally};
use crate::reason::ReasonTally;
use imbrex_report::format::{number, optional};
use imbrex_report::page::chart::Chart;
use imbrex_report::page::{escape, open_scroll, plain_document};
use std::fmt::Write as _;

/// Names of what is left out at most; more are counted.
const LEFT_NAMED_MAX: usize = 20;

/// A page of figures.
pub struct IndexPage<'a> {
    /// What it is called.
    pub title: &'a str,
    /// The figures, those of a paper one after the other.
    pub figures: Vec<IndexFigure<'a>>,
    /// What was not run to its end.
    pub left: Vec<String>,
    /// Numbers that a quick look leaves out.
    pub left_out: Vec<String>,
}

/// A figure of the page.
pub struct IndexFigure<'a> {
    /// The paper, and what it is called; none of an experiment of a user's own.
    pub paper: Option<(&'a str, &'a str)>,
    /// The figure.
    pub figure: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Why results may differ.
    pub differs: &'a str,
    /// Stated and measured numbers.
    pub rows: &'a [Row],
    /// How it is drawn.
    pub charts: Vec<Chart>,
    /// The command that makes it again.
    pub command: String,
    /// Pages and files of the runs behind it: what they are called, and where they are from the page.
    pub files: Vec<(String, String)>,
    /// Whether runs of it are missing.
    pub is_stopped: bool,
}

impl IndexPage<'_> {
    /// The page, complete; texts are escaped.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<header><p class=\"eyebrow\">imbrex</p><h1>{}</h1>",
            escape(self.title)
        );
        if !self.left.is_empty() {
            self.missing(&mut body);
        }
        body.push_str("</header>\n");
        self.summary(&mut body);
        let mut paper = None;
        for figure in &self.figures {
            if figure.paper != paper {
                paper = figure.paper;
                if let Some((id, name)) = paper {
                    let _ = writeln!(
                        body,
                        "<h2 id=\"{}\" style=\"margin-top:34px;font-size:21px\">{}</h2>",
                        escape(id),
                        escape(name)
                    );
                }
            }
            figure.show(&mut body);
        }
        plain_document(self.title, &body)
    }

    fn missing(&self, body: &mut String) {
        let _ = write!(
            body,
            "<p class=\"notice\" id=\"left\">Stopped before the end; {} not run:",
            self.left.len()
        );
        for name in self.left.iter().take(LEFT_NAMED_MAX) {
            let _ = write!(body, "<br>{}", escape(name));
        }
        match self.left.len().saturating_sub(LEFT_NAMED_MAX) {
            0 => {}
            more => _ = write!(body, "<br>and {more} more"),
        }
        body.push_str("</p>\n");
    }

    /// How many numbers agree, by paper and by basis, and why others do not.
    fn summary(&self, body: &mut String) {
        let all = || self.figures.iter().flat_map(|figure| figure.rows);
        if all().next().is_none() && self.left_out.is_empty() {
            return;
        }
        let agree = all().filter(|row| row.agrees).count();
        let _ = writeln!(
            body,
            "<section>\n<div class=\"top\"><h2>{agree} of {} numbers agree</h2></div>\n<p class=\"why\">By \
             what the numbers rest on: published and used for nothing here, published and a parameter was chosen by \
             it (calibrated), true by construction, or a bound of our own.</p>",
            all().count()
        );
        open_scroll("numbers that agree", body);
        body.push_str("<table><thead><tr><th>paper</th>");
        Basis::ALL.iter().for_each(|basis| _ = write!(body, "<th>{}</th>", basis.word()));
        body.push_str("</tr></thead><tbody>\n");
        let mut papers: Vec<(&str, &str)> =
            self.figures.iter().filter_map(|figure| figure.paper).collect();
        papers.dedup();
        for (id, name) in &papers {
            let of_paper = all().filter(|row| row.paper == *id);
            let name = format!("<a href=\"#{}\">{}</a>", escape(id), escape(name));
            tally_row(&name, of_paper.map(|row| (row.basis, row.agrees)), body);
        }
        if papers.len() != 1 {
            tally_row("all", all().map(|row| (row.basis, row.agrees)), body);
        }
        body.push_str("</tbody></table></div>\n");
        let reasons = ReasonTally::of(all().filter_map(|row| row.reason));
        if !reasons.is_empty() {
            body.push_str("<h3>Why the others do not</h3>\n<dl>\n");
            for it in reasons {
                let kind = if it.refuted { "refuted" } else { "not tried as in the paper" };
                let _ = writeln!(
                    body,
                    "<dt>{} <code>{}</code></dt><dd>{kind}: {}</dd>",
                    it.rows,
                    it.reason.word(),
                    it.reason.words()
                );
            }
            body.push_str("</dl>\n");
        }
        if self.figures.len() > 1 {
            self.contents(body);
        }
        if !self.left_out.is_empty() {
            let _ = writeln!(
                body,
                "<details><summary>{} numbers are left out, which need full size</summary>\n<ul>",
                self.left_out.len()
            );
            for name in &self.left_out {
                let _ = writeln!(body, "<li>{}</li>", escape(name));
            }
            body.push_str("</ul></details>\n");
        }
        body.push_str("</section>\n");
    }

    fn contents(&self, body: &mut String) {
        body.push_str("<h3>Figures</h3>\n<ul class=\"legend\">");
        for figure in &self.figures {
            let _ = write!(
                body,
                "<li><a href=\"#{}\">{}</a></li>",
                escape(&figure.id()),
                escape(&figure.id().replacen('.', " ", 1))
            );
        }
        body.push_str("</ul>\n");
    }
}

fn tally_row(name: &str, rows: impl Iterator<Item = (Basis, bool)> + Clone, body: &mut String) {
    let tallies = Tally::of(rows);
    let _ = write!(body, "<tr><th>{name}</th>");
    for basis in Basis::ALL {
        match tallies.iter().find(|tally| tally.basis == basis) {
            Some(tally) => _ = write!(body, "<td>{} of {}</td>", tally.agree, tally.rows),
            None => body.push_str("<td></td>"),
        }
    }
    body.push_str("</tr>\n");
}

impl IndexFigure<'_> {
    /// Its place on the page.
    fn id(&self) -> String {
        match self.paper {
            Some((paper, _)) => format!("{paper}.{}", self.figure),
            None => self.figure.to_string(),
        }
    }

    fn show(&self, body: &mut String) {
        let heading = match self.paper {
            Some(_) => format!("{}: {}", named(self.figure), self.title),
            None => self.title.to_string(),
        };
        let _ = writeln!(
            body,
            "<section id=\"{}\">\n<div class=\"top\"><h2>{}</h2>{}</div>",
            escape(&self.id()),
            escape(&heading),
            self.verdict()
        );
        if self.is_stopped {
            body.push_str("<p class=\"notice\">Stopped before its end: runs are missing.</p>\n");
        }
        if !self.charts.is_empty() {
            body.push_str("<div class=\"two charts\">\n");
            self.charts.iter().for_each(|chart| chart.show(body));
            body.push_str("</div>\n");
        }
        self.table(body);
        for paragraph in self.differs.trim().split("\n\n").filter(|it| !it.is_empty()) {
            let text = escape(paragraph).replace('\n', " ");
            let _ = writeln!(body, "<p class=\"why\" style=\"margin-top:12px\">{text}</p>");
        }
        let _ = writeln!(body, "<pre>{}</pre>", escape(&self.command));
        self.links(body);
        body.push_str("</section>\n");
    }

    fn verdict(&self) -> String {
        let agree = self.rows.iter().filter(|row| row.agrees).count();
        let how = match (agree, self.rows.len()) {
            (_, 0) => return String::new(),
            (agree, all) if agree == all => "well",
            (0, _) => "badly",
            _ => "partly",
        };
        format!("<span class=\"suits {how}\">{agree} of {} agree</span>", self.rows.len())
    }

    fn table(&self, body: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let has_reasons = self.rows.iter().any(|row| row.reason.is_some());
        let has_workloads = self.rows.iter().any(|row| row.workload != self.rows[0].workload);
        body.push_str("<h3>Stated and measured</h3>\n");
        open_scroll("stated and measured", body);
        body.push_str("<table><thead><tr><th>number</th>");
        if has_workloads {
            body.push_str("<th class=\"text\">workload</th>");
        }
        body.push_str(
            "<th>unit</th><th>stated</th><th>measured</th><th>verdict</th><th>basis</th>",
        );
        if has_reasons {
            body.push_str("<th class=\"text\">why</th>");
        }
        body.push_str("</tr></thead><tbody>\n");
        for row in self.rows {
            let _ = write!(
                body,
                "<tr><th style=\"white-space:normal;min-width:220px\">{}</th>",
                escape(&row.metric)
            );
            if has_workloads {
                let _ = write!(
                    body,
                    "<td class=\"text\" style=\"min-width:140px\">{}</td>",
                    escape(&short(&row.names))
                );
            }
            let sign = escape(row.comparison.sign());
            let (verdict, how) =
                if row.agrees { ("agrees", "well") } else { ("disagrees", "badly") };
            let _ = write!(
                body,
                "<td>{}</td><td>{sign}{}</td><td>{}</td>\
                 <td><span class=\"suits {how}\">{verdict}</span></td><td>{}</td>",
                escape(&row.unit),
                number(row.stated),
                optional(row.measured),
                row.basis.word()
            );
            if has_reasons {
                let why = row.reason.map_or("", |reason| reason.words());
                let _ = write!(body, "<td class=\"text\" style=\"min-width:170px\">{why}</td>");
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div>\n");
    }

    fn links(&self, body: &mut String) {
        if self.files.is_empty() {
            return;
        }
        body.push_str("<p class=\"why\" style=\"margin:10px 0 0;overflow-wrap:anywhere\">The runs behind it: ");
        let link = |(name, file): &(String, String)| {
            format!("<a href=\"{}\">{}</a>", escape(&encoded(file)), escape(name))
        };
        let links: Vec<String> = self.files.iter().map(link).collect();
        let _ = writeln!(body, "{}</p>", links.join(", "));
    }
}

/// A figure as one speaks of it.
fn named(figure: &str) -> String {
    for (start, word) in [
        ("figure-", "Figure"),
        ("fig", "Figure"),
        ("table-", "Table"),
        ("table", "Table"),
        ("equation-", "Equation"),
    ] {
        if let Some(rest) = figure.strip_prefix(start)
            && rest.starts_with(|c: char| c.is_ascii_digit())
        {
            return format!("{word} {rest}");
        }
    }
    figure.to_string()
}

/// The workloads of a row: the first, and how many more.
fn short(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}

/// A path for an address.
fn encoded(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            other => _ = write!(text, "%{other:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_named_and_addresses_encoded() {
        assert_eq!(named("figure-5.7-packed"), "Figure 5.7-packed");
        assert_eq!(named("fig15a-c"), "Figure 15a-c");
        assert_eq!(named("table-size"), "table-size");
        assert_eq!(encoded("a b/ü?.html"), "a%20b/%C3%BC%3F.html");
    }

    #[test]
    fn what_is_left_is_named_and_no_text_is_taken_for_markup() {
        let figure = IndexFigure {
            paper: None,
            figure: "mine",
            title: "a < b",
            differs: "",
            rows: &[],
            charts: vec![],
            command: "imbrex run 'a<b.toml'".into(),
            files: vec![("report".into(), "a b/report.html".into())],
            is_stopped: true,
        };
        let left = (0..22).map(|n| format!("<{n}>")).collect();
        let page =
            IndexPage { title: "mine", figures: vec![figure], left, left_out: vec![] }.to_html();
        assert!(page.contains("22 not run:<br>&lt;0&gt;") && page.contains("and 2 more"), "{page}");
        assert!(page.contains("<h2>a &lt; b</h2>") && page.contains("href=\"a%20b/report.html\""));
        assert!(!page.contains("<script") && !page.contains("numbers agree"));
    }
}
