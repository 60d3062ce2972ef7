//! The top of the page: what the trace is, what suits it, the figures that matter most.

use std::fmt::Write as _;

use imbrex_traces::characterise::{DriveKind, Suits};
use imbrex_traces::{DirectionInfo, SourceKind, TraceInfo};

use super::percent_of;
use imbrex_report::format::{bytes, count, duration, number};
use imbrex_report::page::{escape, open_section};

/// What the trace is, and whether it is real.
pub(super) fn header(info: &TraceInfo, body: &mut String) {
    let kind = info.kind;
    let _ = writeln!(
        body,
        "<header>\n<p class=\"eyebrow\">Imbrex workload</p>\n<h1>{}</h1>\n<p class=\"workload\">\
         <span class=\"kind {kind}\">{kind}</span><code>{}</code>{}</p>",
        escape(&headline(info)),
        escape(&info.path),
        // Most traces have no other name than their file's.
        match info.label == info.path {
            true => String::new(),
            false => format!("<span>{}</span>", escape(&info.label)),
        },
    );
    for line in notices(info) {
        let _ = writeln!(body, "<p class=\"notice\">{}</p>", escape(&line));
    }
    body.push_str("<dl>\n");
    for (name, value) in facts(info) {
        let _ = writeln!(body, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    body.push_str("</dl>\n</header>\n");
}

/// How many requests, in what time, in which direction.
fn headline(info: &TraceInfo) -> String {
    let requests = match info.requests {
        0 => return "No requests".to_string(),
        1 => "1 request".to_string(),
        requests => format!("{} requests", count(requests)),
    };
    let length = match info.duration_s {
        Some(seconds) => format!(" in {}", duration(seconds)),
        None => ", without times".to_string(),
    };
    match info.read.requests + info.write.requests {
        0 => format!("{requests}{length}, none of them a read or a write"),
        _ => format!("{requests}{length}, {} % writes", number(info.write_percent)),
    }
}

/// What a reader must know before any figure.
fn notices(info: &TraceInfo) -> Vec<String> {
    let mut notices = vec![];
    if info.kind == SourceKind::Synthetic {
        notices.push(
            "Synthetic: generated from a recipe, not taken from a system. The figures are those of the \
             recipe's assumptions."
                .to_string(),
        );
    }
    if info.duration_s.is_none() {
        notices.push(
            "This format has no times. Rates, gaps, intervals and everything over time are left out."
                .to_string(),
        );
    }
    let inversions = info.counts.time_inversions;
    if inversions > 0 {
        notices.push(format!(
            "{} requests are earlier in the file's clock than the one before; they count as arriving with it.",
            count(inversions)
        ));
    }
    notices
}

fn facts(info: &TraceInfo) -> Vec<(&'static str, String)> {
    let counts = &info.counts;
    let mut facts = vec![("format", info.detected.clone())];
    facts.extend(info.sha256.clone().map(|sha256| ("sha256", sha256)));
    facts.extend([
        ("devices", count(info.devices)),
        ("skipped lines", counts.skipped.to_string()),
        (
            "not aligned",
            format!(
                "{} requests to 512 B, {} to 4 KiB",
                count(counts.unaligned_to_sector),
                count(counts.unaligned_to_block)
            ),
        ),
    ]);
    if info.trims + info.flushes + info.fua > 0 {
        facts.push((
            "other requests",
            format!(
                "{} trims, {} flushes, {} with forced unit access",
                count(info.trims),
                count(info.flushes),
                count(info.fua)
            ),
        ));
    }
    facts
}

/// Which kinds of drive the workload suits, with the evidence.
pub(super) fn verdicts(info: &TraceInfo, body: &mut String) {
    if info.sections.verdicts.is_empty() {
        return;
    }
    open_section(
        "Which drives it suits",
        "Judged from the trace alone by the rules given, each with its number and threshold. No drive was \
         simulated; imbrex compare does that.",
        body,
    );
    body.push_str("<div class=\"verdicts\">\n");
    for verdict in &info.sections.verdicts {
        let drive = match verdict.drive {
            DriveKind::Plain => "Disk without shingles",
            DriveKind::DriveManaged => "Drive-managed shingled disk",
            DriveKind::HostManaged => "Host-managed shingled disk",
            DriveKind::SsdCache => "SSD cache before a disk",
        };
        let (class, suits) = match verdict.verdict {
            Suits::Well => ("well", "suits well"),
            Suits::Partly => ("partly", "suits partly"),
            Suits::Badly => ("badly", "suits badly"),
            Suits::Unknown => ("unknown", "not known"),
        };
        let _ = write!(
            body,
            "<div class=\"verdict\"><h3>{drive}</h3><p><span class=\"suits {class}\">{suits}</span></p>\
             <p>{}</p><ul>",
            escape(&verdict.words)
        );
        for evidence in &verdict.evidence {
            let _ = write!(body, "<li>{}</li>", escape(evidence));
        }
        body.push_str("</ul></div>\n");
    }
    body.push_str("</div>\n</section>\n");
}

/// Figures that matter, each with what it stands beside.
pub(super) fn cards(info: &TraceInfo, body: &mut String) {
    let direction = |part: &DirectionInfo| match part.requests {
        0 => "none in the trace".to_string(),
        _ => format!("{}, median {}", bytes(part.bytes), bytes(part.median_bytes)),
    };
    let mut cards: Vec<(&str, String, String)> = vec![
        ("Reads", count(info.read.requests), direction(&info.read)),
        ("Writes", count(info.write.requests), direction(&info.write)),
        (
            "Updates",
            percent_of(info.write.requests, info.update_percent),
            "of the writes meet a block written before".to_string(),
        ),
        (
            "Random",
            percent_of(
                info.read.requests + info.write.requests,
                info.sections.randomness.random_percent,
            ),
            "of the requests start over 128 KiB from each of the last 32".to_string(),
        ),
        (
            "Distinct data",
            bytes(info.unique_bytes),
            format!("{} of it written", bytes(info.write.unique_bytes)),
        ),
        (
            "Address range",
            bytes(info.footprint_bytes),
            "up to the end of the highest request".to_string(),
        ),
    ];
    // Requests that all arrive at once have no rate.
    let activity = info.sections.activity.as_ref();
    if let Some(activity) = activity.filter(|activity| activity.mean_requests_per_s > 0.0) {
        cards.push((
            "Mean rate",
            format!("{} /s", number(activity.mean_requests_per_s)),
            "requests per second from the first to the last".to_string(),
        ));
        let minute = activity.peaks.iter().find(|peak| peak.interval_s == 60);
        cards.extend(minute.map(|peak| {
            (
                "Burstiness",
                format!("{}x", number(peak.burstiness_ratio)),
                format!("peak minute, {} /s, over the mean rate", number(peak.requests_per_s)),
            )
        }));
    }
    body.push_str("<div class=\"cards\">\n");
    for (name, value, note) in cards {
        let _ = writeln!(
            body,
            "<div class=\"card\"><div class=\"name\">{name}</div><div class=\"value\">{value}</div>\
             <div class=\"note\">{note}</div></div>"
        );
    }
    body.push_str("</div>\n");
}
