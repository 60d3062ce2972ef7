//! The page of `imbrex trace mrc`: one chart, its values below it.

use std::fmt::Write as _;

use imbrex_report::format::count;
use imbrex_report::page::escape;
use imbrex_traces::characterise::{LruCurve, LruCurvePoint};

use super::Page;
use super::blocks::{BLOCK_BYTES, lru_chart};

/// The page about what LRU caches hit on a trace.
pub fn lru_page(curve: &LruCurve) -> String {
    let mut page = Page::default();
    let kind = curve.kind;
    let _ = writeln!(
        page.body,
        "<header>\n<p class=\"eyebrow\">Imbrex LRU cache</p>\n<h1>{} blocks read, {} written, {} distinct</h1>\n\
         <p class=\"workload\"><span class=\"kind {kind}\">{kind}</span><code>{}</code></p>\n<dl>",
        count(curve.read_blocks),
        count(curve.write_blocks),
        count(curve.touched_blocks),
        escape(&curve.path),
    );
    let sha256 = curve.sha256.clone().map(|sha256| ("sha256", sha256));
    for (name, value) in [("counted", curve.method())].into_iter().chain(sha256) {
        let _ = writeln!(page.body, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    page.body.push_str("</dl>\n</header>\n");
    let mut points: Vec<&LruCurvePoint> = curve.points.iter().collect();
    points.sort_by_key(|point| point.cache_blocks);
    points.dedup_by_key(|point| point.cache_blocks);
    let line = |of: fn(&LruCurvePoint) -> Option<f64>| {
        let points = points.iter();
        points
            .filter_map(|point| Some((point.cache_blocks as f64 * BLOCK_BYTES, of(point)?)))
            .collect()
    };
    lru_chart(
        line(|point| point.hit_percent),
        line(|point| point.read_hit_percent),
        line(|point| point.write_hit_percent),
    )
    .section(&mut page);
    page.finish(&curve.path)
}
