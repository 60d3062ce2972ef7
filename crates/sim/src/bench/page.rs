//! Rows as one HTML page that needs nothing else.

use super::row::{Published, Role, Row};
use super::standard::CLIFF;
use crate::basis::{Basis, Tally};
use imbrex_report::format::{number, short};
use imbrex_report::page::{escape, open_section, plain_document, svg};
use std::fmt::Write as _;

/// Width and height of the drawing in a row, in its own units.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 18.0;

impl Row {
    /// The page: for each drive a card for each figure that was published, in which it is drawn as well: the accepted range as a
    /// band, the published figure as a tick, the model as a dot; the curves of its cliffs; and a table of all else.
    pub fn bench_page(rows: &[Row]) -> String {
        let mut body = format!(
            "<header>\n<p class=\"eyebrow\">Imbrex drive models</p>\n<h1>{}</h1>\n\
             <p class=\"workload\">The band is what is accepted, the tick what was measured on the real \
             drive, the dot the model. A hollow dot: the drive was calibrated on this row, or its file \
             states the number.</p>\n",
            escape(&Row::verdict(rows)),
        );
        let tallies = Row::tallies(rows);
        if !tallies.is_empty() {
            let lines = escape(&Tally::lines(&tallies));
            let _ = writeln!(body, "<p>Of the gates hold</p>\n<pre>{lines}</pre>");
        }
        body.push_str("</header>\n");
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let of_drive = rest.iter().take_while(|row| row.drive == first.drive).count();
            section(&rest[..of_drive], &mut body);
            rest = &rest[of_drive..];
        }
        plain_document("imbrex: drive models", &body)
    }
}

fn section(rows: &[Row], body: &mut String) {
    let why = "What the model does, beside what was measured on the real drive where somebody has published it.";
    open_section(&rows[0].drive, why, body);
    let (described, compared): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.role == Role::Model);
    if !compared.is_empty() {
        body.push_str("<div class=\"cards\">\n");
        compared.iter().for_each(|row| card(row, body));
        body.push_str("</div>\n");
    }
    cliffs(rows, body);
    if !described.is_empty() {
        table(&described, body);
    }
    body.push_str("</section>\n");
}

/// A published figure beside the model's.
fn card(row: &Row, body: &mut String) {
    let model = row.model.map_or("-".to_string(), number);
    let (class, verdict) = verdict(row);
    let _ = writeln!(
        body,
        "<div class=\"card\"><div class=\"name\">{} {}</div><div class=\"value\">{model}<small>{}</small></div>{}\
         <div class=\"note\"><p>real drive: {}<br>accepted: {}</p><span class=\"suits {class}\">{verdict}</span>{}</div></div>",
        escape(&row.id),
        escape(&row.metric),
        escape(&row.unit),
        drawing(row),
        escape(&row.published_text()),
        escape(&row.tolerance),
        details("how", row),
    );
}

/// What exactly was measured, and who did it on the real drive.
fn details(summary: &str, row: &Row) -> String {
    let source = match row.source.is_empty() {
        true => String::new(),
        false => format!(" [{}]", escape(&row.source)),
    };
    format!(
        "<details><summary>{}</summary>{}{source}{}</details>",
        escape(summary),
        escape(&row.definition),
        escape(&row.seeds_text())
    )
}

/// What the model does where nothing was published.
fn table(rows: &[&Row], body: &mut String) {
    body.push_str(
        "<h3>What else the model does</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>measured</th><th>model</th>\
         <th>unit</th></tr></thead>\n<tbody>\n",
    );
    for row in rows {
        let _ = writeln!(
            body,
            "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td></tr>",
            details(&row.metric, row),
            row.model.map_or("-".to_string(), number),
            escape(&row.unit)
        );
    }
    body.push_str("</tbody>\n</table></div>\n");
}

/// How fast the drive was as it was written to, a chart for each kind of writes that filled its log.
fn cliffs(rows: &[Row], body: &mut String) {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.curve.len() > 1).collect();
    if rows.is_empty() {
        return;
    }
    body.push_str(
        "<h3>Cliffs</h3>\n<p class=\"why\">The rate of random writes to an empty drive as its log fills, on a logarithmic scale. \
         Behind the thin upright line it has to clean.</p>\n<div class=\"two charts\">\n",
    );
    for row in rows {
        cliff(row, body);
    }
    body.push_str("</div>\n");
}

fn cliff(row: &Row, body: &mut String) {
    let of = row.metric.strip_suffix(CLIFF).unwrap_or(&row.metric);
    let rates = row.curve.iter().map(|point| point[1]);
    let (low, high) =
        rates.fold((f64::MAX, 0.0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let low = low.log10().floor();
    let high = high.log10().ceil().max(low + 1.0);
    let width = svg::WIDTH / 2;
    let frame = svg::Frame {
        reader: String::new(),
        left: 64 * svg::SCALE,
        right: width - 24 * svg::SCALE,
        top: 10 * svg::SCALE,
        bottom: 170 * svg::SCALE,
        width,
        height: 222 * svg::SCALE,
        from: 0.0,
        to: row.curve[row.curve.len() - 1][0],
    };
    let y = |rate: f64| {
        let share = (rate.log10() - low) / (high - low);
        frame.bottom - (share * f64::from(frame.bottom - frame.top)).round() as i32
    };
    let _ = writeln!(body, "<div><h4>{}, MB/s</h4>", escape(of));
    svg::draw(&frame, &format!("Rate of {of} over what was written"), body, |canvas| {
        for decade in low as i32..=high as i32 {
            let rate = 10f64.powi(decade);
            svg::line(canvas, &[(frame.left, y(rate)), (frame.right, y(rate))], svg::GRID, 1);
            let beside = (frame.left - 8 * svg::SCALE, y(rate));
            svg::text(canvas, &short(rate), beside, svg::HPos::Right);
        }
        for tick in svg::ticks(frame.to, 5.0) {
            frame.mark(canvas, tick, &short(tick));
        }
        frame.name_axis(canvas, "GB written");
        if let Some(cliff) = row.model {
            let at = frame.x(cliff.min(frame.to));
            svg::line(canvas, &[(at, frame.top), (at, frame.bottom)], svg::MUTED, 1);
        }
        let mut line = Vec::new();
        let mut from = frame.left;
        for [written, rate] in &row.curve {
            line.extend([(from, y(*rate)), (frame.x(*written), y(*rate))]);
            from = frame.x(*written);
        }
        svg::line(canvas, &line, svg::colour_of(0), 2);
    });
    body.push_str("</div>\n");
}

/// How the page marks what came of a row, and says it.
fn verdict(row: &Row) -> (&'static str, &'static str) {
    match (row.role, row.pass) {
        (_, None) => ("unknown", "not measured"),
        (Role::Report, Some(true)) => ("well", "agrees"),
        (Role::Report, Some(false)) => ("partly", "differs"),
        (_, Some(true)) => ("well", "pass"),
        (_, Some(false)) => ("badly", "fail"),
    }
}

/// The accepted range, the published figure and the model on one scale that begins at 0.
fn drawing(row: &Row) -> String {
    let (Some(model), Some([low, high])) = (row.model, row.accepted) else {
        return String::new();
    };
    let bounded = |end: f64| end.abs() < f64::MAX;
    let known = [model, low, high].into_iter().filter(|end| bounded(*end));
    let longest = known.fold(0.0, f64::max) * 1.1;
    if longest <= 0.0 {
        return String::new();
    }
    let at = |value: f64| (value / longest).clamp(0.0, 1.0) * (WIDTH - 10.0) + 5.0;
    let mut drawing = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" style=\"max-width:{WIDTH}px\" role=\"img\" \
         aria-label=\"{}\">",
        escape(&format!("{} accepted {}, model {}", row.metric, row.tolerance, number(model)))
    );
    let _ = write!(
        drawing,
        "<rect x=\"{:.1}\" y=\"4\" width=\"{:.1}\" height=\"10\" rx=\"3\" fill=\"var(--good-back)\" \
         stroke=\"var(--line)\"/>",
        at(low),
        (at(high) - at(low)).max(2.0)
    );
    let ticks = match row.published {
        Published::Number(published) => vec![published],
        Published::Between(from, to) => vec![from, to],
        _ => vec![],
    };
    for tick in ticks {
        let x = at(tick);
        let _ = write!(
            drawing,
            "<line x1=\"{x:.1}\" y1=\"2\" x2=\"{x:.1}\" y2=\"16\" stroke=\"var(--ink)\" \
             stroke-width=\"1.5\"/>"
        );
    }
    let colour = match row.pass {
        Some(false) => "var(--warn)",
        _ => "var(--accent)",
    };
    let fill = if matches!(row.basis, Some(Basis::Calibrated | Basis::Construction)) {
        "var(--card)"
    } else {
        colour
    };
    let _ = write!(
        drawing,
        "<circle cx=\"{:.1}\" cy=\"9\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\" \
         stroke-width=\"2\"/></svg>",
        at(model)
    );
    drawing
}

#[cfg(test)]
mod tests {
    use super::super::row::{Accepted, Gate};
    use super::*;

    #[test]
    fn the_page_names_every_row_and_escapes_it() {
        let gate = Gate {
            id: "V00",
            metric: "reads <fast>",
            definition: "how",
            unit: "MB/s",
            published: Published::Number(100.0),
            accepted: Accepted::Share(0.1),
            role: Role::Gate,
            basis: Basis::Published,
            source: "somebody",
        };
        let rows = [gate.row("one", Some(95.0)), gate.row("two", Some(50.0))];
        let page = Row::bench_page(&rows);
        assert!(page.contains("1 of 2 gates hold, 0 of 0 ungated rows differ"));
        assert!(page.contains("1 of   2 published numbers and statements"));
        assert!(page.contains("<h2>one</h2>") && page.contains("<h2>two</h2>"));
        assert!(page.contains("reads &lt;fast&gt;") && !page.contains("<fast>"));
        assert_eq!(page.matches("<circle").count(), 2);
        assert_eq!(page.matches(">fail</span>").count(), 1);
        assert!(!page.contains("Cliffs"));
        let mut cliff = Gate { role: Role::Model, ..gate }.row("one", Some(2.0));
        cliff.curve = vec![[1.0, 90.0], [2.0, 80.0], [3.0, 0.5]];
        let page = Row::bench_page(&[cliff]);
        assert!(page.contains("Cliffs") && page.contains("data-to=\"3\""), "{page}");
        assert!(!page.contains("class=\"card\""));
    }
}
