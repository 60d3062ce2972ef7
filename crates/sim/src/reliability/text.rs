//! What was computed, as tables in a terminal and as a page.

use super::draws::{Drawn, Estimate};
use super::input::YEAR_H;
use super::study::{Case, Figures, Reliability};
use crate::rows::{Rows, in_columns, in_page};
use imbrex_report::page::{escape, plain_document, svg};
use std::fmt::Write;

const MISSING: &str = "missing disks";
const OR_ERROR: &str = "or a read error";

fn years(hours: f64) -> String {
    match hours / YEAR_H {
        few if few < 1.0 => format!("{hours:.2} h"),
        few if few < 10_000.0 => format!("{few:.1} years"),
        many => format!("{many:.3e} years"),
    }
}

fn hours_too(hours: Option<f64>) -> String {
    match hours {
        None => "-".into(),
        Some(hours) if hours < YEAR_H => years(hours),
        Some(hours) => format!("{} ({hours:.2} h)", years(hours)),
    }
}

fn probability(value: f64) -> String {
    match value {
        value if value >= 0.001 => format!("{value:.4}"),
        value => format!("{value:.3e}"),
    }
}

fn estimate(estimate: &Estimate, told: impl Fn(f64) -> String) -> String {
    let share = match estimate.mean {
        mean if mean > 0.0 => 100.0 * estimate.standard_error / mean,
        _ => 0.0,
    };
    format!("{} +- {share:.1} %", told(estimate.mean))
}

fn bytes(value: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
    let (of, unit) = units.into_iter().find(|(of, _)| value >= *of).unwrap_or((1.0, "B"));
    format!("{:.3} {unit}", value / of)
}

impl Reliability {
    /// What disks there are.
    fn head(&self) -> Vec<String> {
        let Reliability { kind, disks, arrays, .. } = self;
        let chained =
            if *arrays > 1 { format!(", {arrays} arrays that share one") } else { String::new() };
        let mut lines = vec![format!(
            "{kind}: {disks} disks of {}{chained}, {} for a user; a disk lives {} in the mean",
            bytes(self.capacity_bytes),
            bytes(self.usable_bytes),
            years(self.mttf_h)
        )];
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let mut space = format!("live data: {} of all disks", percent(self.space.live));
        if let Some([least, most]) = self.space.as_stated {
            let _ = write!(
                space,
                "; {} to {} as the thesis states it, which counts what is on the data disk as further data",
                percent(least),
                percent(most)
            );
        }
        if let Some(dead) = self.space.dead_before_collection {
            let _ = write!(space, "; dead before a collection: up to {}", percent(dead));
        }
        lines.push(space);
        if let Some(harmed) = self.volumes_harmed {
            lines.push(format!("a disk that is lost harms up to {harmed} volumes"));
        }
        lines
    }

    /// The figures of a case for exponential lives and repairs.
    fn exact(&self, case: &Case) -> Rows {
        let row = |name: String, of: &dyn Fn(&Figures) -> String| {
            vec![name, of(&case.missing_disks), of(&case.or_read_error)]
        };
        let in_years = format!("loss in {} years", self.years);
        vec![
            vec!["".into(), MISSING.into(), OR_ERROR.into()],
            row("mean time to a loss, exact chain".into(), &|it| hours_too(Some(it.mean_h))),
            row("closed form".into(), &|it| hours_too(it.closed_form_h)),
            row("to first order".into(), &|it| hours_too(it.first_order_h)),
            row(format!("{in_years}, exact chain"), &|it| probability(it.loss)),
            row(format!("{in_years}, as an exponential"), &|it| {
                probability(it.loss_as_exponential)
            }),
        ]
    }

    /// What was drawn for a case.
    fn drawn(&self, case: &Case) -> Rows {
        let head = [
            "shape of lives",
            "loss, missing disks",
            "loss, or a read error",
            "bytes lost",
            "mean time to a loss",
            "or a read error",
            "drawn",
        ];
        let how = |drawn: &Drawn| match drawn.copies {
            1 => format!("{} runs, {} losses", drawn.runs, drawn.losses_seen),
            copies => {
                format!("{} runs split in {copies}, {} losses", drawn.runs, drawn.losses_seen)
            }
        };
        let row = |drawn: &Drawn| {
            let time = |it: &Option<Estimate>| {
                it.as_ref().map_or("too long to wait for".into(), |it| estimate(it, years))
            };
            vec![
                drawn.shape.to_string(),
                estimate(&drawn.loss, probability),
                estimate(&drawn.loss_or_error, probability),
                estimate(&drawn.bytes_lost, bytes),
                time(&drawn.mean_h),
                time(&drawn.mean_or_error_h),
                how(drawn),
            ]
        };
        [head.map(String::from).to_vec()].into_iter().chain(case.drawn.iter().map(row)).collect()
    }

    /// The lines above the tables of a case.
    fn case_head(&self, case: &Case) -> Vec<String> {
        let how = if case.is_measured { "as measured" } else { "exponential" };
        let mut error =
            format!("read error in a rebuild: {}", probability(case.read_error_in_rebuild));
        if let Some(shared) = case.read_error_in_rebuild_of_shared {
            let _ = write!(error, ", of the shared disk {}", probability(shared));
        }
        vec![format!("repair, {how}: {}", case.name), error]
    }

    /// Why the mean time to a loss says little, with the figures of a case.
    fn why_it_misleads(&self, case: &Case) -> String {
        let mean = years(case.missing_disks.mean_h);
        let of = |probability: f64| match probability {
            none if none <= 0.0 => "none that could be told".to_owned(),
            often if often >= 0.01 => format!("{:.1} %", 100.0 * often),
            rare => format!("one in {:.0}", 1.0 / rare),
        };
        format!(
            "A mean time to a loss of {mean} is no time that anybody waits for: 63 % of such systems would be lost by then. In {} \
             years missing disks lose data of {} of them, and of {} if a block counts that cannot be read in a rebuild. The mean \
             does not say how much is lost, and it takes disks to have no age and failures to have no common cause.",
            self.years,
            of(case.missing_disks.loss),
            of(case.or_read_error.loss),
        )
    }

    /// As tables for a terminal.
    pub fn text(&self) -> String {
        let mut text = self.head().join("\n") + "\n";
        for case in &self.cases {
            let _ = write!(text, "\n{}\n\n", self.case_head(case).join("\n"));
            let _ = writeln!(text, "{}\n", in_columns(&self.exact(case), 1));
            let drawn =
                format!("Drawn, in {} years, lives by Weibull with the same mean:", self.years);
            let _ = writeln!(text, "{drawn}\n{}\n", in_columns(&self.drawn(case), 1));
            let _ = writeln!(text, "{}", self.why_it_misleads(case));
        }
        text
    }

    /// As a page that loads nothing.
    pub fn page(&self, title: &str) -> String {
        let mut body = format!("<h1>{}</h1>\n", escape(title));
        for line in self.head() {
            let _ = writeln!(body, "<p>{}</p>", escape(&line));
        }
        for case in &self.cases {
            let [name, error] = &self.case_head(case)[..] else { unreachable!("two lines") };
            let _ = writeln!(body, "<section><h2>{}</h2><p>{}</p>", escape(name), escape(error));
            curves(case, self.years, &mut body);
            body.push_str(&bars(case));
            in_page("Exact", &self.exact(case), &mut body);
            let _ = writeln!(
                body,
                "<p>Drawn, in {} years, lives by Weibull with the same mean:</p>",
                self.years
            );
            in_page("Drawn", &self.drawn(case), &mut body);
            let _ = writeln!(body, "<p>{}</p></section>", escape(&self.why_it_misleads(case)));
        }
        plain_document(title, &body)
    }
}

/// The probability of a loss over the years, on a scale of powers of ten.
fn curves(case: &Case, years: f64, body: &mut String) {
    let lines = [
        ("missing disks, exact", &case.missing_disks.loss_by),
        ("or a read error, exact", &case.or_read_error.loss_by),
    ];
    let told = lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.loss));
    let least = told.filter(|loss| *loss > 0.0).fold(1.0, f64::min);
    // The lowest decade that is shown.
    let decades = (-least.log10()).ceil().clamp(1.0, DECADES_MAX);
    let frame = svg::Frame {
        reader: String::new(),
        left: 80 * svg::SCALE,
        right: svg::WIDTH - 20 * svg::SCALE,
        top: 12 * svg::SCALE,
        bottom: 240 * svg::SCALE,
        width: svg::WIDTH,
        height: 290 * svg::SCALE,
        from: 0.0,
        to: years,
    };
    let y = |loss: f64| {
        let down = (-loss.log10() / decades).clamp(0.0, 1.0);
        frame.top + (down * f64::from(frame.bottom - frame.top)).round() as i32
    };
    body.push_str("<p>Probability of a loss until then, exact:</p>\n");
    svg::draw(&frame, "Probability of a loss over the years", body, |canvas| {
        for year in svg::ticks(years, 10.0) {
            frame.mark(canvas, year, &year.to_string());
        }
        frame.name_axis(canvas, "years");
        for decade in 0..=decades as i32 {
            let at = y(10f64.powi(-decade));
            svg::line(canvas, &[(frame.left, at), (frame.right, at)], svg::GRID, 1);
            let label = format!("1e-{decade}").replace("1e-0", "1");
            svg::text(canvas, &label, (frame.left - 8 * svg::SCALE, at), svg::HPos::Right);
        }
        for (colour, (_, points)) in lines.iter().enumerate() {
            let seen = points.iter().filter(|point| point.loss > 0.0);
            let path: Vec<_> = seen.map(|point| (frame.x(point.years), y(point.loss))).collect();
            svg::line(canvas, &path, svg::colour_of(colour), 2);
        }
    });
    let legend = lines.iter().enumerate().map(|(colour, (name, _))| {
        format!("<span style=\"color:var(--s{colour})\">&#9632;</span> {name}")
    });
    let _ = writeln!(body, "<p>{}</p>", legend.collect::<Vec<_>>().join(" &#160; "));
}

/// So many powers of ten are shown of a curve at most.
const DECADES_MAX: f64 = 12.0;

/// The probabilities of a loss beside each other, on a scale of powers of ten.
fn bars(case: &Case) -> String {
    let mut bars = vec![
        ("missing disks, exact".to_owned(), case.missing_disks.loss),
        ("or a read error, exact".to_owned(), case.or_read_error.loss),
    ];
    for drawn in &case.drawn {
        bars.push((format!("missing disks, shape {}", drawn.shape), drawn.loss.mean));
        bars.push((format!("or a read error, shape {}", drawn.shape), drawn.loss_or_error.mean));
    }
    let told = bars.iter().map(|(_, value)| *value).filter(|value| *value > 0.0);
    let least = told.clone().fold(1.0, f64::min).log10().floor();
    let (height, left, width) = (22.0, 230.0, 560.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 900 {0}\" width=\"900\" height=\"{0}\" role=\"img\" aria-label=\"Probability of a loss\">\n",
        height * bars.len() as f64
    );
    for (at, (name, value)) in bars.iter().enumerate() {
        let y = height * at as f64;
        let share = match *value {
            value if value > 0.0 => 1.0 - value.log10() / least.min(-1.0),
            _ => 0.0,
        };
        let long = width * share.clamp(0.0, 1.0);
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{0:.1}\" fill=\"currentColor\" font-size=\"13\">{1}</text>\
             <rect x=\"{left}\" y=\"{2:.1}\" width=\"{long:.1}\" height=\"14\" fill=\"var(--s{3})\"/>\
             <text x=\"{4:.1}\" y=\"{0:.1}\" fill=\"currentColor\" font-size=\"13\">{5}</text>",
            y + 15.0,
            escape(name),
            y + 4.0,
            at % 2,
            left + long + 6.0,
            probability(*value),
        );
    }
    format!(
        "<p>Probability of a loss; each step of the scale is a power of ten.</p>\n{svg}</svg>\n"
    )
}
