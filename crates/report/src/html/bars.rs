//! Stacked horizontal bars: one row a disk, one colour a cause.

use super::super::by_cause::ByCause;
use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{DiskUse, Report, Run};
use super::super::segment_use::SEGMENT_METRICS;
use crate::format::{number, optional};
use crate::page::{chip, escape, open_section};
use imbrex_core::operation::Cause;

/// Busy time of each disk, by cause.
pub(super) fn io_time(report: &Report, body: &mut String) {
    open_section(
        "I/O time by device and cause",
        "Seconds each disk was busy, and for whom. Cleaning is the price of shingling.",
        body,
    );
    stacked(report, |_, disk| Some(disk.busy_time_by_cause_s), "s", body);
    body.push_str("</section>\n");
}

/// Bytes written to each disk per byte the host wrote, by cause.
pub(super) fn write_amplification(report: &Report, body: &mut String) {
    open_section(
        "Device writes by cause",
        "Bytes written to each disk for each byte the host wrote; scratch copies of bands count as \
         cleaning.",
        body,
    );
    let values = |_: &Run, disk: &DiskUse| {
        let by_cause = disk.write_amplification;
        by_cause[Cause::Host].map(|_| by_cause.map(|value| value.unwrap_or(0.0)))
    };
    stacked(report, values, "bytes per host byte", body);
    body.push_str("</section>\n");
}

/// Movement of the heads of each disk, by cause; nothing where none was counted.
pub(super) fn movement(report: &Report, body: &mut String) {
    if !report.runs.iter().any(|run| run.movement.is_counted()) {
        return;
    }
    open_section(
        "Movement of the heads",
        "Thousands of blocks that the heads of each disk moved over, by the cause of the visit that the \
         move leads to. A model of the disk counted them from what reached it; a dash: it has no heads.",
        body,
    );
    let values = |run: &Run, disk: &DiskUse| {
        let counts = run.movement.movement.as_ref()?.get(&disk.name)?;
        Some(counts.by_cause.map(|blocks| blocks as f64 / 1000.0))
    };
    stacked(report, values, "thousand blocks", body);
    body.push_str("</section>\n");
}

/// Segments rewritten, and the hits of the caches before them; nothing where no run has segments.
pub(super) fn segments(report: &Report, body: &mut String) {
    if !report.has_segments() {
        return;
    }
    open_section(
        "Segments",
        "Segments or S-blocks rewritten for 10,000 requests, 64 KiB blocks written in one of them, and \
         the blocks that the write buffer and the read cache held, of those looked up; of the stacks that have such \
         nodes.",
        body,
    );
    for metric in &SEGMENT_METRICS {
        body.push_str(&format!(
            "<h3>{}, {}</h3>\n<div class=\"bars\">\n",
            metric.name, metric.unit
        ));
        let runs = report.segment_bars(metric);
        // A share has its whole scale.
        let longest = match metric.unit {
            "%" => 100.0,
            _ => runs.iter().map(|(_, _, value)| *value).fold(0.0, f64::max),
        };
        for (index, label, value) in &runs {
            let share = match longest > 0.0 {
                true => 100.0 * value / longest,
                false => 0.0,
            };
            body.push_str(&format!(
                "<span class=\"who\">{}{}</span><span class=\"disk\"></span><span class=\"bar\" role=\"img\" \
                 aria-label=\"{}\"><span style=\"width:{share:.3}%;background:var(--s{index})\"></span>\
                 </span><span class=\"sum\">{}</span>\n",
                chip(*index),
                escape(label),
                escape(&format!("{label}: {} {}", number(*value), metric.unit)),
                number(*value)
            ));
        }
        body.push_str("</div>\n");
    }
    body.push_str("</section>\n");
}

/// The bars of every disk of every run on one scale, with the legend of the causes that occur.
fn stacked(
    report: &Report,
    values: impl Fn(&Run, &DiskUse) -> Option<ByCause<f64>>,
    unit: &str,
    body: &mut String,
) {
    let runs = || report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let mut longest = 0.0f64;
    let mut occurs = ByCause::<bool>::default();
    let disks = runs().flat_map(|(_, run)| run.disks.iter().map(move |disk| (run, disk)));
    for by_cause in disks.filter_map(|(run, disk)| values(run, disk)) {
        longest = longest.max(by_cause.values().iter().sum());
        for (cause, value) in by_cause.iter() {
            occurs[cause] |= *value > 0.0;
        }
    }
    body.push_str("<ul class=\"legend\" aria-label=\"causes\">");
    for cause in Cause::ALL.into_iter().filter(|cause| occurs[*cause]) {
        body.push_str(&format!(
            "<li><i class=\"chip\" style=\"background:var(--c{})\"></i>{}</li>",
            cause as usize,
            cause.name()
        ));
    }
    body.push_str("</ul>\n<div class=\"bars\">\n");
    for (index, run) in runs() {
        if index > 0 {
            body.push_str("<span class=\"gap\"></span>\n");
        }
        for (i, disk) in run.disks.iter().enumerate() {
            let label = match i {
                0 => format!("{}{}", chip(index), escape(&run.label())),
                _ => String::new(),
            };
            let by_cause = values(run, disk);
            let sum = by_cause.map(|by_cause| by_cause.values().iter().sum::<f64>());
            body.push_str(&format!(
                "<span class=\"who\">{label}</span><span class=\"disk\">{}</span><span class=\"bar\" role=\"img\" \
                 aria-label=\"{}\">",
                escape(&disk.name),
                escape(&format!("{} {}: {} {unit}", run.label(), disk.name, optional(sum)))
            ));
            for (cause, value) in by_cause.iter().flat_map(|by_cause| by_cause.iter()) {
                if *value > 0.0 {
                    body.push_str(&format!(
                        "<span style=\"width:{:.3}%;background:var(--c{})\" \
                         title=\"{}: {} {unit}\"></span>",
                        100.0 * value / longest,
                        cause as usize,
                        cause.name(),
                        number(*value)
                    ));
                }
            }
            body.push_str(&format!("</span><span class=\"sum\">{}</span>\n", optional(sum)));
        }
    }
    body.push_str("</div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::plain_document;

    #[test]
    fn every_cause_has_a_colour_on_a_light_page_and_on_a_dark_one() {
        let page = plain_document("", "");
        for cause in Cause::ALL {
            let colour = format!("--c{}: #", cause as usize);
            assert_eq!(page.matches(&colour).count(), 2, "{colour}");
        }
    }
}
