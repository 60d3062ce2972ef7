//! What every HTML page of Imbrex shares: the style, the frame of the document, drawing, and packed data.
//!
//! A page is one file that loads nothing. What it says is there without its script as well, except heat
//! maps, which the script paints.

pub mod chart;
mod packed;
pub mod svg;

pub use packed::PackedHeatMap;

/// Colours for runs or lines, `--s0` and up in the style.
pub const COLOURS: usize = 24;

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
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
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

/// The colour of run or line `index`, the same in every chart.
pub fn chip(index: usize) -> String {
    match index < COLOURS {
        true => format!("<i class=\"chip\" style=\"background:var(--s{index})\"></i>"),
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
