//! What every HTML page of Imbrex shares: the style, the frame of the document, drawing, and packed data.
//!
//! A page is one file that loads nothing. What it says is there without its script as well, except heat
//! maps, which the script paints and `<noscript>` tells of.

pub mod chart;
mod packed;
pub mod svg;

pub use packed::PackedHeatMap;

/// Runs or lines that are told apart, `--s0` and up in the style.
pub const COLOURS: usize = 32;
/// Hues that they have. Those of the same hue differ in their dashes and in the shape of their marks.
pub const HUES: usize = 8;

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/page.css");
/// The part of the script that all pages with a script share.
const COMMON_SCRIPT: &str = include_str!("assets/common.js");

/// A page that shows `body` and runs `script` on `data`, which is JSON from [`json_in_page`].
pub fn document(title: &str, body: &str, data: &str, script: &str) -> String {
    // The pieces go in one by one so that nothing inside them is taken for a placeholder.
    let mut page = String::with_capacity(body.len() + data.len() + 64_000);
    let mut rest = PAGE;
    while let Some(start) = rest.find("{{") {
        let end = start + rest[start..].find("}}").expect("the template closes its braces");
        page.push_str(&rest[..start]);
        match &rest[start + 2..end] {
            "title" => page.push_str(&escape(title)),
            "style" => page.push_str(STYLE),
            "body" => page.push_str(body),
            "data" => page.push_str(data),
            "script" => {
                page.push_str(COMMON_SCRIPT);
                page.push_str(script);
            }
            other => panic!("unknown placeholder {other} in the template"),
        }
        rest = &rest[end + 2..];
    }
    page + rest
}

/// A page that shows `body` and has no script.
pub fn plain_document(title: &str, body: &str) -> String {
    reloading_document(title, None, body)
}

/// The same, which a browser loads again after so many seconds if there is a number.
pub fn reloading_document(title: &str, after_s: Option<u32>, body: &str) -> String {
    let reload = after_s
        .map(|after_s| format!("<meta http-equiv=\"refresh\" content=\"{after_s}\">\n"))
        .unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{reload}\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// `data` as JSON that is safe between script tags.
pub fn json_in_page(data: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(data).expect("the data has only string keys");
    // In JSON a `<` can only be inside a string, where an escape means the same.
    json.replace('<', "\\u003c")
}

/// `text` for element content and attribute values.
pub fn escape(text: &str) -> String {
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

/// How run or line `index` is drawn, the same in every chart: a piece of its line with a mark. The squares of legends are for
/// what is no run.
pub fn chip(index: usize) -> String {
    match index < COLOURS {
        true => format!("<i class=\"run k{}\" style=\"--c:var(--s{index})\"></i>", index / HUES),
        false => String::new(),
    }
}

/// Opens a box that scrolls by itself where the table in it is wider than the page; `</div>` closes it.
pub fn open_scroll(label: &str, body: &mut String) {
    body.push_str(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">",
        escape(label)
    ));
}

/// Opens a section: a heading and what the figure answers.
pub fn open_section(title: &str, why: &str, body: &mut String) {
    body.push_str(&format!(
        "<section>\n<div class=\"top\"><h2>{}</h2></div>\n<p class=\"why\">{}</p>\n",
        escape(title),
        escape(why)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::operation::Cause;

    /// Least distance of two colours in CIE L*a*b* that are never taken for each other.
    const TOLD_APART: f64 = 20.0;

    /// The colours `--NAME0` and up of the light style or of the dark one.
    fn colours(name: &str, count: usize, dark: usize) -> Vec<[f64; 3]> {
        let of = |index: usize| {
            let key = format!("--{name}{index}: #");
            let hex = STYLE.split(&key).nth(1 + dark).unwrap_or_else(|| panic!("no {key}"));
            lab(u32::from_str_radix(&hex[..6], 16).expect("six digits"))
        };
        (0..count).map(of).collect()
    }

    fn lab(rgb: u32) -> [f64; 3] {
        let linear = |shift: u32| {
            let share = f64::from(rgb >> shift & 255) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        let (r, g, b) = (linear(16), linear(8), linear(0));
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
        let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn no_system_has_the_colour_of_a_cause() {
        for dark in [0, 1] {
            let causes = colours("c", Cause::ALL.len(), dark);
            for (system, colour) in colours("s", HUES, dark).iter().enumerate() {
                for (cause, other) in causes.iter().enumerate() {
                    let apart = distance(colour, other);
                    assert!(apart > TOLD_APART, "--s{system} and --c{cause}: {apart}");
                }
            }
        }
    }

    #[test]
    fn every_system_has_a_colour_and_a_line_of_its_own() {
        for index in 0..COLOURS {
            assert!(STYLE.contains(&format!("--s{index}: ")), "{index}");
        }
        for style in 1..COLOURS / HUES {
            assert!(STYLE.contains(&format!(".plot .k{style} {{")), "{style}");
            assert!(STYLE.contains(&format!(".run.k{style} {{")), "{style}");
        }
    }
}
