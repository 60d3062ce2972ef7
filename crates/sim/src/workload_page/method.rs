//! How the figures were found.

use std::fmt::Write as _;

use imbrex_traces::TraceInfo;

use imbrex_report::format::{count, number};
use imbrex_report::page::{escape, open_scroll, open_section};

/// What was counted and what was estimated, and the recipe of a synthetic trace.
pub(super) fn section(info: &TraceInfo, recipe: Option<&str>, body: &mut String) {
    open_section(
        "How it was measured",
        "Exact figures are counted. Where the trace has more distinct blocks than fit in memory, figures about \
         blocks come from a sample of the addresses; percentiles are rounded down by less than 1.6 %.",
        body,
    );
    open_scroll("methods", body);
    body.push_str(
        "<table class=\"shares\"><thead><tr><th scope=\"col\">figures</th><th scope=\"col\">sampled</th>\
         <th scope=\"col\">standard error</th><th scope=\"col\" class=\"text\">method</th></tr></thead>\n<tbody>\n",
    );
    let methods = &info.sections.methods;
    for (name, method) in [
        ("requests: counts, sizes, times, randomness", &methods.requests),
        ("distinct blocks and bytes, updates, bands", &methods.distinct),
        ("blocks: popularity, reuse, intervals, working set", &methods.blocks),
    ] {
        let sampled = match method.sampled_one_in {
            0 | 1 => "all".to_string(),
            one_in => format!("1 in {}", count(one_in)),
        };
        let error = match method.standard_error_percent {
            0.0 => "none".to_string(),
            error => format!("{} %", number(error)),
        };
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\">{name}</th><td>{sampled}</td><td>{error}</td>\
             <td class=\"text\">{}</td></tr>",
            escape(&method.method)
        );
    }
    body.push_str("</tbody></table></div>\n");
    if let Some(recipe) = recipe {
        let _ = writeln!(
            body,
            "<details><summary>The recipe, with all that it assumes</summary><pre>{}</pre></details>",
            escape(recipe)
        );
    }
    body.push_str("</section>\n");
}
