//! The values of a closed form as JSON, CSV and a page with a figure.

use crate::format::optional;
use crate::page::{escape, plain_document};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Size of the figure and of its margins, in its own units.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 60.0;
/// Lines of the figure at most: as many as there are colours that can be told apart.
const LINES_MAX: usize = 16;
/// Parts of each axis.
const PARTS: usize = 4;

/// A closed form at one combination of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct FormPoint {
    /// The parameters by name.
    pub parameters: BTreeMap<String, f64>,
    /// The values by name, the one that is drawn first; none where a form is undefined.
    pub values: Vec<(&'static str, Option<f64>)>,
}

/// A closed form at many points.
#[derive(Clone, Debug, PartialEq)]
pub struct FormTable {
    /// Name of the form.
    pub form: &'static str,
    /// What it says, in one line.
    pub title: &'static str,
    /// Its points.
    pub points: Vec<FormPoint>,
}

impl FormPoint {
    /// The values as a document.
    pub fn values_json(&self) -> Value {
        self.values.iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
    }
}

/// Names of all files that a closed form is written as.
pub const FORM_FILES: [&str; 3] = ["closed_form.json", "closed_form.csv", "closed_form.html"];

impl FormTable {
    /// The table as a document.
    pub fn to_json(&self) -> Value {
        let point = |point: &FormPoint| json!({"parameters": point.parameters, "values": point.values_json()});
        let points: Vec<Value> = self.points.iter().map(point).collect();
        json!({"form": self.form, "title": self.title, "points": points})
    }

    /// One line for each point; undefined values are empty.
    pub fn to_csv(&self) -> String {
        let Some(first) = self.points.first() else {
            return String::new();
        };
        let keys = first.parameters.keys().map(String::as_str);
        let names: Vec<&str> = keys.chain(first.values.iter().map(|(name, _)| *name)).collect();
        let mut csv = format!("{}\n", names.join(","));
        for point in &self.points {
            let parameters = point.parameters.values().map(f64::to_string);
            let value =
                |value: &(&str, Option<f64>)| value.1.map_or(String::new(), |v| v.to_string());
            let cells: Vec<String> = parameters.chain(point.values.iter().map(value)).collect();
            let _ = writeln!(csv, "{}", cells.join(","));
        }
        csv
    }

    /// Writes `closed_form.json`, `closed_form.csv` and `closed_form.html` into a folder, which is created if missing.
    ///
    /// # Errors
    /// When a file cannot be written; the error names it.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
        let texts = [format!("{:#}\n", self.to_json()), self.to_csv(), self.to_html()];
        for (name, text) in FORM_FILES.into_iter().zip(texts) {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| named(&path, error))?;
        }
        Ok(())
    }

    /// A page with the figure: the parameter with most values across, the first value up, a line for each combination of the others.
    pub fn to_html(&self) -> String {
        let lines = self.lines();
        let mut body = format!("<h1>{}</h1>\n<section>\n", escape(self.title));
        body.push_str(
            "<p class=\"why\">A closed form: computed, not simulated, from no workload.</p>\n",
        );
        for (index, (label, _)) in lines.iter().enumerate().take(LINES_MAX) {
            let _ = writeln!(
                body,
                "<span><i class=\"chip\" style=\"background:var(--s{index})\"></i>{}</span>",
                escape(label)
            );
        }
        self.draw(&lines, &mut body);
        if lines.len() > LINES_MAX {
            let _ = writeln!(body, "<p>{LINES_MAX} of {} lines are drawn.</p>", lines.len());
        }
        body.push_str("</section>\n");
        plain_document(&format!("imbrex: {}", self.form), &body)
    }

    /// The parameter that has the most values.
    fn across(&self) -> Option<&str> {
        let first = self.points.first()?;
        let distinct = |key: &str| {
            let values = self.points.iter().filter_map(|point| point.parameters.get(key));
            values.map(|value| value.to_bits()).collect::<BTreeSet<u64>>().len()
        };
        let keys = first.parameters.keys().map(String::as_str);
        keys.max_by_key(|key| distinct(key))
    }

    /// What each line of the figure stands for, and its points from left to right.
    fn lines(&self) -> Vec<(String, Vec<(f64, f64)>)> {
        let Some(across) = self.across() else {
            return vec![];
        };
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for point in &self.points {
            let others = point.parameters.iter().filter(|(key, _)| *key != across);
            let label: Vec<String> = others.map(|(key, value)| format!("{key} {value}")).collect();
            let label = label.join(", ");
            let Some((_, Some(y))) = point.values.first() else {
                continue;
            };
            let at = (point.parameters[across], *y);
            match lines.iter_mut().find(|(other, _)| *other == label) {
                Some((_, points)) => points.push(at),
                None => lines.push((label, vec![at])),
            }
        }
        for (_, points) in &mut lines {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        lines
    }

    fn draw(&self, lines: &[(String, Vec<(f64, f64)>)], body: &mut String) {
        let all = || lines.iter().flat_map(|(_, points)| points);
        let span = |of: fn(&(f64, f64)) -> f64| {
            let low = all().map(of).fold(f64::INFINITY, f64::min);
            let high = all().map(of).fold(f64::NEG_INFINITY, f64::max);
            // A single value lies in the middle of its axis.
            if high > low { (low, high) } else { (low - 1.0, high + 1.0) }
        };
        if all().next().is_none() {
            return;
        }
        let ((left, right), (bottom, top)) = (span(|at| at.0), span(|at| at.1));
        let x = |value: f64| MARGIN + (value - left) / (right - left) * (WIDTH - 2.0 * MARGIN);
        let y = |value: f64| {
            HEIGHT - MARGIN - (value - bottom) / (top - bottom) * (HEIGHT - 2.0 * MARGIN)
        };
        let _ =
            writeln!(body, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" width=\"100%\">");
        for part in 0..=PARTS {
            let share = part as f64 / PARTS as f64;
            let (at_x, at_y) = (left + share * (right - left), bottom + share * (top - bottom));
            let _ = writeln!(
                body,
                "<line x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" style=\"stroke:var(--grid)\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" style=\"fill:var(--muted)\">{}</text>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:var(--muted)\">{}</text>",
                WIDTH - MARGIN,
                y(at_y),
                y(at_y),
                MARGIN - 8.0,
                y(at_y) + 5.0,
                optional(Some(at_y)),
                x(at_x),
                HEIGHT - MARGIN + 20.0,
                optional(Some(at_x)),
            );
        }
        for (index, (_, points)) in lines.iter().enumerate().take(LINES_MAX) {
            let points: Vec<String> =
                points.iter().map(|at| format!("{:.1},{:.1}", x(at.0), y(at.1))).collect();
            let _ = writeln!(
                body,
                "<polyline points=\"{}\" fill=\"none\" style=\"stroke:var(--s{index});stroke-width:2\"/>",
                points.join(" ")
            );
        }
        let name =
            self.points.first().and_then(|point| point.values.first()).map_or("", |(name, _)| name);
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:var(--ink)\">{}</text>\n\
             <text x=\"8\" y=\"24\" style=\"fill:var(--ink)\">{}</text>\n</svg>",
            WIDTH / 2.0,
            HEIGHT - 10.0,
            escape(self.across().unwrap_or("")),
            escape(name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FormTable {
        let point = |a: f64, b: f64, y| FormPoint {
            parameters: [("a".to_string(), a), ("b".to_string(), b)].into(),
            values: vec![("y", y), ("z", Some(a))],
        };
        FormTable {
            form: "sum",
            title: "a < b",
            points: vec![
                point(1.0, 0.5, Some(3.0)),
                point(2.0, 0.5, None),
                point(3.0, 0.5, Some(5.0)),
            ],
        }
    }

    #[test]
    fn undefined_values_are_empty_in_csv_and_null_in_json() {
        assert_eq!(table().to_csv(), "a,b,y,z\n1,0.5,3,1\n2,0.5,,2\n3,0.5,5,3\n");
        assert_eq!(table().to_json()["points"][1]["values"], json!({"y": null, "z": 2.0}));
    }

    #[test]
    fn the_figure_has_a_line_for_each_combination_of_the_other_parameters() {
        assert_eq!(table().lines(), [("b 0.5".to_string(), vec![(1.0, 3.0), (3.0, 5.0)])]);
        let page = table().to_html();
        assert_eq!(page.matches("<polyline").count(), 1);
        assert!(page.contains("<h1>a &lt; b</h1>"));
        let empty = FormTable { points: vec![], ..table() };
        assert!(empty.to_csv().is_empty() && !empty.to_html().contains("<svg"));
    }
}
