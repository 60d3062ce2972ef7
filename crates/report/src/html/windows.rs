//! What was asked of each window of a device, and what goes with a lost disk.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Report, Run};
use super::super::windows::OverDisks;
use crate::format::{count, number, optional};
use crate::page::{chip, escape, open_scroll, open_section};

/// The section; nothing where no device has windows.
pub(super) fn of_devices(report: &Report, body: &mut String) {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let runs: Vec<_> = runs.filter(|(_, run)| !run.windows.windows.is_empty()).collect();
    if runs.is_empty() {
        return;
    }
    open_section(
        "Windows of the device",
        "Each window is a device of its own to those who use it. A request counts to the window that it was for.",
        body,
    );
    each_window(&runs, body);
    body.push_str("<h3>Over the disks</h3>\n");
    over_disks(&runs, body);
    body.push_str("</section>\n");
}

fn each_window(runs: &[(usize, &Run)], body: &mut String) {
    let columns = [
        ("requests", "number"),
        ("mean", "ms"),
        ("p50", "ms"),
        ("p99", "ms"),
        ("p99.9", "ms"),
        ("max", "ms"),
    ];
    open_table("Windows of the device", &["system", "window"], &columns, body);
    for (index, run) in runs {
        for window in &run.windows.windows {
            let label = escape(&run.label());
            let _ = write!(
                body,
                "<tr><td>{}{label}</td><td class=\"text\">{}</td><td>{}</td>",
                chip(*index),
                escape(&window.name),
                count(window.requests)
            );
            let times = window.response_ms;
            for value in [times.mean, times.p50, times.p99, times.p99_9, times.max] {
                let _ = write!(body, "<td>{}</td>", optional(value));
            }
            body.push_str("</tr>\n");
        }
    }
    body.push_str("</tbody></table></div>\n");
}

fn over_disks(runs: &[(usize, &Run)], body: &mut String) {
    let columns = [
        ("seeks over the disks", "s"),
        ("responses over the disks", "s"),
        ("mean of the windows' p99", "ms"),
        ("seeks over the requests", "ms"),
    ];
    open_table("Over the disks", &["system", "windows lost with a disk"], &columns, body);
    for (index, run) in runs {
        let Some(over) = run.windows.over_disks else {
            continue;
        };
        let OverDisks { seek_time_s, response_s, p99_ms, seek_ms_per_request, .. } = over;
        let lost = run.windows.windows_lost.iter();
        let lost = lost.map(|(disk, windows)| format!("{disk}: {}", windows.join(", ")));
        let lost: Vec<String> = lost.collect();
        let _ = writeln!(
            body,
            "<tr><td>{}{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            chip(*index),
            escape(&run.label()),
            escape(&lost.join("; ")),
            number(seek_time_s),
            number(response_s),
            optional(p99_ms),
            optional(seek_ms_per_request),
        );
    }
    body.push_str("</tbody></table></div>\n");
}

fn open_table(title: &str, names: &[&str; 2], columns: &[(&str, &str)], body: &mut String) {
    open_scroll(title, body);
    let [first, second] = names;
    let _ = write!(
        body,
        "<table><thead><tr><th scope=\"col\">{first}</th><th scope=\"col\" class=\"text\">{second}</th>"
    );
    for (name, unit) in columns {
        let _ = write!(body, "<th scope=\"col\">{name}<small>{unit}</small></th>");
    }
    body.push_str("</tr></thead>\n<tbody>\n");
}
