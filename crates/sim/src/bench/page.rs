//! Rows as one HTML page that needs nothing else.

use super::row::{Published, Role, Row};
use crate::basis::{Basis, Tally};
use imbrex_report::format::number;
use imbrex_report::page::{escape, plain_document};
use std::fmt::Write as _;

/// Width and height of the drawing in a row, in its own units.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 18.0;

impl Row {
    /// The page: for each drive a table, in which each row is drawn as well: the accepted range as a
    /// band, the published figure as a tick, the model as a dot.
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
    let _ = write!(
        body,
        "<section>\n<div class=\"top\"><h2>{}</h2></div>\n<div class=\"scroll\"><table>\n<thead><tr>\
         <th>measured</th><th>real drive</th><th>model</th><th>unit</th><th>accepted</th><th></th>\
         <th>verdict</th></tr></thead>\n<tbody>\n",
        escape(&rows[0].drive)
    );
    for row in rows {
        let model = row.model.map_or("-".to_string(), number);
        let _ = writeln!(
            body,
            "<tr><td class=\"text\"><details><summary>{} {}</summary>{}{}{}</details></td>\
             <td>{}</td><td>{model}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.id),
            escape(&row.metric),
            escape(&row.definition),
            match row.source.is_empty() {
                true => String::new(),
                false => format!(" [{}]", escape(&row.source)),
            },
            escape(&row.seeds_text()),
            escape(&row.published_text()),
            escape(&row.unit),
            escape(&row.tolerance),
            drawing(row),
            verdict(row)
        );
    }
    body.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn verdict(row: &Row) -> &'static str {
    match (row.role, row.pass) {
        (Role::Model, _) => "",
        (_, None) => "not measured",
        (Role::Gate, Some(true)) => "pass",
        (Role::Gate, Some(false)) => "<b>fail</b>",
        (Role::Report, Some(true)) => "agrees",
        (Role::Report, Some(false)) => "differs",
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
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" style=\"width:{WIDTH}px\" role=\"img\" \
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
        assert_eq!(page.matches("<b>fail</b>").count(), 1);
    }
}
