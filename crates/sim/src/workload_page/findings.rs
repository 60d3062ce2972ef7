//! The figures as tables, each with its definition.

use std::fmt::Write as _;

use imbrex_traces::TraceInfo;
use imbrex_traces::characterise::{Adjacent, Aggregation, LruPoint, Mostly, Share};

use super::percent_of;
use imbrex_report::format::{bytes, count, duration, number, short_duration};
use imbrex_report::page::{open_scroll, open_section};

/// A figure: its name, its value, what it means.
type Row = (String, String, &'static str);

/// All tables. Definitions that follow Li et al. say so in the introduction.
pub(super) fn section(info: &TraceInfo, body: &mut String) {
    open_section(
        "Figures and their definitions",
        "Figures marked * follow the findings of Li et al., An In-Depth Comparative Analysis of Cloud Block \
         Storage Workloads, ACM Transactions on Storage, 2023; theirs are per volume and some of them by bytes, \
         these are of the trace and by accesses. Blocks are of 4 KiB; an access is a request's use of one block.",
        body,
    );
    shares(info, body);
    table("Load", &load(info), body);
    table("Space", &space(info), body);
    table("Popularity", &popularity(info), body);
    table("Time", &time(info), body);
    table("Caching", &caching(info), body);
    body.push_str("</section>\n");
}

fn percent(value: f64) -> String {
    format!("{} %", number(value))
}

fn row(name: &str, value: String, definition: &'static str) -> Row {
    (name.to_string(), value, definition)
}

fn table(title: &str, rows: &[Row], body: &mut String) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(body, "<h3>{title}</h3>");
    open_scroll(title, body);
    body.push_str(
        "<table class=\"defined\"><thead><tr><th scope=\"col\">figure</th><th scope=\"col\">value</th>\
         <th scope=\"col\" class=\"text\">definition</th></tr></thead>\n<tbody>\n",
    );
    for (name, value, definition) in rows {
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\">{name}</th><td>{value}</td><td class=\"text\">{definition}</td></tr>"
        );
    }
    body.push_str("</tbody></table></div>\n");
}

/// Reads, writes and updates, as shares of three wholes.
fn shares(info: &TraceInfo, body: &mut String) {
    let shares = &info.sections.shares;
    body.push_str("<h3>Shares</h3>\n");
    open_scroll("shares", body);
    body.push_str(
        "<table class=\"shares\"><thead><tr><th scope=\"col\">of all</th><th scope=\"col\">read</th>\
         <th scope=\"col\">written</th><th scope=\"col\">updated</th>\
         <th scope=\"col\" class=\"text\">definition</th></tr></thead>\n<tbody>\n",
    );
    let wholes: [(&str, &Share, &str); 3] = [
        (
            "requests",
            &shares.of_requests,
            "Reads and writes. A write is an update if it meets at least one block written before.",
        ),
        ("block accesses", &shares.of_accesses, "Blocks read and written, each counted each time."),
        (
            "distinct blocks",
            &shares.of_distinct_blocks,
            "Blocks read, or written, or written at least twice. A block may be in all three.",
        ),
    ];
    for (name, share, definition) in wholes {
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"text\">{definition}</td></tr>",
            percent(share.read_percent),
            percent(share.write_percent),
            percent(share.update_percent)
        );
    }
    body.push_str("</tbody></table></div>\n");
}

fn load(info: &TraceInfo) -> Vec<Row> {
    let activity = info.sections.activity.as_ref();
    // Requests that all arrive at once have no rate.
    let Some(activity) = activity.filter(|activity| activity.mean_requests_per_s > 0.0) else {
        return vec![];
    };
    let mut rows = vec![row(
        "mean rate",
        format!("{} /s", number(activity.mean_requests_per_s)),
        "Reads and writes per second from the first request to the last.",
    )];
    for peak in &activity.peaks {
        let length = short_duration(peak.interval_s as f64);
        let marked = if peak.interval_s == 60 { " *" } else { "" };
        rows.push((
            format!("peak in {length}"),
            format!("{} /s", number(peak.requests_per_s)),
            "Requests per second in the fullest interval of that length.",
        ));
        rows.push((
            format!("burstiness in {length}{marked}"),
            format!("{}x", number(peak.burstiness_ratio)),
            "That peak over the mean rate.",
        ));
        rows.push((
            format!("most written in {length}"),
            bytes(peak.written_bytes),
            "Bytes of writes in the interval that has most of them.",
        ));
    }
    let of_all = |active: u64| format!("{} of {}", count(active), count(activity.intervals));
    rows.extend([
        row(
            "active intervals *",
            format!("{}, {}", of_all(activity.active_intervals), percent(activity.active_percent)),
            "Intervals of 10 minutes with at least one read or write.",
        ),
        row(
            "read-active intervals *",
            of_all(activity.read_active_intervals),
            "Intervals of 10 minutes with at least one read.",
        ),
        row(
            "write-active intervals *",
            of_all(activity.write_active_intervals),
            "Intervals of 10 minutes with at least one write.",
        ),
    ]);
    rows.extend(info.sections.gaps.as_ref().map(|gaps| {
        row(
            "largest write burst",
            bytes(gaps.largest_write_burst_bytes),
            "Most bytes written between two gaps of at least 1 s.",
        )
    }));
    rows
}

fn space(info: &TraceInfo) -> Vec<Row> {
    let random = &info.sections.randomness;
    let (reads, writes) = (info.read.requests, info.write.requests);
    vec![
        row(
            "random requests *",
            percent_of(reads + writes, random.random_percent),
            "The offset is more than 128 KiB from the offsets of each of the last 32 requests to the device, and none of them ended there.",
        ),
        row(
            "random reads *",
            percent_of(reads, random.random_reads_percent),
            "The same, of the reads.",
        ),
        row(
            "random writes *",
            percent_of(writes, random.random_writes_percent),
            "The same, of the writes.",
        ),
        row(
            "sequential reads",
            percent_of(reads, random.sequential_reads_percent),
            "Reads that start where one of the last 32 requests to the device ended.",
        ),
        row(
            "sequential writes",
            percent_of(writes, random.sequential_writes_percent),
            "Writes that start where one of the last 32 requests to the device ended.",
        ),
        row(
            "bytes of sequential writes",
            percent_of(writes, random.sequential_write_bytes_percent),
            "Of the bytes written, those of such writes.",
        ),
        row(
            "not contiguous",
            percent_of(reads + writes, info.random_percent),
            "Requests that do not start exactly where the one before on the device ended.",
        ),
        row(
            "update coverage *",
            percent_of(writes, info.sections.shares.update_coverage_percent),
            "Of the distinct blocks written, those written at least twice.",
        ),
        row(
            "bands written",
            bytes(info.written_band_bytes),
            "Size of the bands of 18 MiB that writes touch.",
        ),
        row(
            "bands accessed",
            bytes(info.accessed_band_bytes),
            "Size of the bands of 18 MiB that reads or writes touch.",
        ),
    ]
}

fn popularity(info: &TraceInfo) -> Vec<Row> {
    let popularity = &info.sections.popularity;
    let top = |part: &Aggregation| {
        let share = |percent| percent_of(part.blocks, percent);
        format!("{} and {}", share(part.top_1_percent), share(part.top_10_percent))
    };
    let mostly = |part: &Mostly, of: &str| {
        format!("{}; {} of {of}", percent(part.blocks_percent), percent(part.traffic_percent))
    };
    vec![
        row(
            "accesses to the top 1 % and 10 %",
            top(&popularity.accesses),
            "Share of the accesses that go to the most popular 1 % and 10 % of the blocks accessed.",
        ),
        row(
            "reads of the top 1 % and 10 % *",
            top(&popularity.reads),
            "The same of the reads, over the blocks read.",
        ),
        row(
            "writes to the top 1 % and 10 % *",
            top(&popularity.writes),
            "The same of the writes, over the blocks written.",
        ),
        row(
            "read-mostly blocks *",
            mostly(&popularity.read_mostly, "reads"),
            "Blocks of whose accesses more than 95 % are reads, of the blocks accessed; then the share of all \
             reads that go to them.",
        ),
        row(
            "write-mostly blocks *",
            mostly(&popularity.write_mostly, "writes"),
            "Blocks of whose accesses more than 95 % are writes, of the blocks accessed; then the share of all \
             writes that go to them.",
        ),
    ]
}

fn time(info: &TraceInfo) -> Vec<Row> {
    let adjacent = &info.sections.adjacent_accesses;
    let pairs = |pairs: &Adjacent| match &pairs.time_ns {
        Some(times) if times.count > 0 => {
            let seconds = |ns: u64| duration(ns as f64 / 1e9);
            format!(
                "{}, {} / {} / {}",
                count(pairs.count),
                seconds(times.p25),
                seconds(times.p50),
                seconds(times.p75)
            )
        }
        _ => count(pairs.count),
    };
    vec![
        row(
            "read after write *",
            pairs(&adjacent.read_after_write),
            "Pairs of a write and the next access to the same block, where that is a read; the quartiles of \
             the time between.",
        ),
        row(
            "write after write *",
            pairs(&adjacent.write_after_write),
            "Likewise, a write after a write.",
        ),
        row(
            "read after read *",
            pairs(&adjacent.read_after_read),
            "Likewise, a read after a read.",
        ),
        row(
            "write after read *",
            pairs(&adjacent.write_after_read),
            "Likewise, a write after a read.",
        ),
        row(
            "update interval *",
            pairs(&adjacent.update_interval),
            "Pairs of a write of a block and its next write, whatever was read between; the quartiles of the \
             time between.",
        ),
    ]
}

fn caching(info: &TraceInfo) -> Vec<Row> {
    let reuse = &info.sections.reuse;
    let blocks = |blocks: u64| bytes(blocks * 4096);
    let misses = |point: &LruPoint| {
        format!(
            "{} and {} at {}",
            percent_of(info.read.requests, point.read_miss_percent),
            percent_of(info.write.requests, point.write_miss_percent),
            blocks(point.cache_blocks)
        )
    };
    let distance = &reuse.distance_blocks;
    let mut rows = vec![
        row(
            "misses at 1 % *",
            misses(&reuse.lru_at_1_percent),
            "Read and write misses of an LRU cache of 1 % of the distinct blocks.",
        ),
        row(
            "misses at 10 % *",
            misses(&reuse.lru_at_10_percent),
            "Read and write misses of an LRU cache of 10 % of the distinct blocks.",
        ),
        row(
            "first accesses",
            count(reuse.cold_accesses),
            "Accesses to a block that was not accessed before; no cache hits them.",
        ),
    ];
    if distance.count > 0 {
        rows.push(row(
            "reuse distance",
            format!(
                "{} / {} / {}",
                blocks(distance.p25),
                blocks(distance.p50),
                blocks(distance.p75)
            ),
            "Quartiles of the distinct blocks accessed since the last access to the same block, that block \
             included: the least LRU cache that hits.",
        ));
    }
    rows
}
