//! The plain sentence a comparison comes down to.

use super::report::{Report, Run};
use crate::format::{count, factor, number, optional};

/// Fewer band rewrites of the reference than this decide nothing.
const REWRITES_CONCLUSIVE_MIN: u64 = 100;

/// Systems that bound what a policy can reach and are no rivals of it.
const BOUNDS: [&str; 2] = ["opt", "unlimited"];

/// The runs a comparison is about, all with the same swept settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest<'a> {
    /// Plain LRU if it ran, else the first run with a cache over bands.
    pub(super) reference: &'a Run,
    /// Of the others with a cache over bands, the one that writes the fewest band bytes.
    pub(super) best: &'a Run,
    /// Of those left, the one that writes the fewest.
    rival: Option<&'a Run>,
    /// A conventional disk without a cache, if one ran.
    conventional: Option<&'a Run>,
}

/// The contest of a report, if it has two systems that can be compared. Of several swept settings it
/// is the one at which the fewest band bytes are written, of those that decide something if any does.
pub(super) fn contest(report: &Report) -> Option<Contest<'_>> {
    let rivals = || {
        report.runs.iter().filter(|run| {
            run.log.bands.is_some()
                && run.cache.capacity_blocks.is_some()
                && !BOUNDS.contains(&run.system.as_str())
        })
    };
    let contests = rivals().filter_map(|best| {
        let mut equals = rivals().filter(|run| settings(run) == settings(best));
        let reference = equals.clone().find(|run| run.system == "lru").or_else(|| equals.next())?;
        let rival = rivals()
            .filter(|run| settings(run) == settings(best))
            .filter(|run| !std::ptr::eq(*run, reference) && !std::ptr::eq(*run, best))
            .min_by_key(|run| run.rewrites.band_bytes_written);
        let conventional = report.runs.iter().find(|run| is_conventional(run));
        (!std::ptr::eq(best, reference)).then_some(Contest { reference, best, rival, conventional })
    });
    contests.min_by_key(|contest| {
        let decides = contest.reference.rewrites.bands_rewritten >= REWRITES_CONCLUSIVE_MIN;
        (!decides, contest.best.rewrites.band_bytes_written)
    })
}

/// The swept settings of a run but for the system itself, which may be swept too.
fn settings(run: &Run) -> Vec<(&String, &serde_json::Value)> {
    let settings = run.parameters.iter();
    settings.filter(|(key, _)| key.as_str() != "system").collect()
}

/// What stacks of segments rewrite, the fewest beside the most, if there are two systems with the
/// same swept settings. Of several settings it is the one at which the fewest are rewritten.
fn of_segments(report: &Report) -> Option<String> {
    let per_request = |run: &Run| {
        let segments = run.segments_rewritten()? as f64;
        (run.host.requests > 0).then(|| segments / run.host.requests as f64)
    };
    let by_segments = |a: &&Run, b: &&Run| per_request(a).partial_cmp(&per_request(b));
    let rivals = || (report.runs.iter()).filter(|run| per_request(run).is_some());
    let ordered = |a: &&Run, b: &&Run| by_segments(a, b).unwrap_or(std::cmp::Ordering::Equal);
    let best = rivals().min_by(ordered)?;
    let reference = rivals()
        .filter(|run| run.system != best.system && settings(run) == settings(best))
        .max_by(ordered)?;
    if reference.segments_rewritten()? < REWRITES_CONCLUSIVE_MIN {
        return Some(format!(
            "Inconclusive: {} rewrote only {} segments, too few to tell systems apart.",
            reference.label(),
            count(reference.segments_rewritten()?)
        ));
    }
    let segments = match (per_request(best)?, per_request(reference)?) {
        (ours, theirs) if ours >= theirs => "rewrites as many segments as".to_string(),
        (0.0, _) => "rewrites no segment, unlike".to_string(),
        (ours, theirs) => format!("rewrites {} fewer segments than", factor(theirs / ours)),
    };
    let disk = report.runs.iter().find(|run| is_conventional(run));
    let times = [
        reference.times_that_of(best).map(|times| format!("; {} needs {times}", reference.label())),
        disk.and_then(|disk| {
            let times = disk.times_that_of(best)?;
            Some(format!("; the conventional disk, {}, needs {times}", disk.label()))
        }),
    ];
    let (name, rival) = (best.label(), reference.label());
    let times: String = times.into_iter().flatten().collect();
    let few = few_rewrites(&name, best.segments_rewritten()?, "segment");
    Some(format!("{name} {segments} {rival}{times}.{few}"))
}

/// What has to be said of the best system if it rewrote so few bands or segments itself that a few
/// more would change every factor; else nothing.
fn few_rewrites(name: &str, rewritten: u64, what: &str) -> String {
    match rewritten {
        REWRITES_CONCLUSIVE_MIN.. => String::new(),
        0 => format!(" {name} rewrote no {what}, too few to say by how much."),
        1 => format!(" {name} rewrote only 1 {what}, too few to say by how much."),
        few => format!(" {name} rewrote only {few} {what}s, too few to say by how much."),
    }
}

/// True for a bare disk with an arm that takes writes anywhere.
fn is_conventional(run: &Run) -> bool {
    let has_arm = run.costs.seek_time_s > 0.0;
    has_arm
        && run.disks.len() <= 1
        && run.log.bands.is_none()
        && run.zones.is_none()
        && run.cache.capacity_blocks.is_none()
        && run.segments_rewritten().is_none()
}

impl Report {
    /// One or two plain sentences: what the comparison shows, or what the only run did.
    pub fn headline(&self) -> String {
        if let Some(contest) = contest(self) {
            return contest.sentence();
        }
        if let Some(sentence) = of_segments(self) {
            return sentence;
        }
        let conventional = self.runs.iter().find(|run| is_conventional(run));
        let shingled = self.runs.iter().filter(|run| run.log.bands.is_some());
        match (conventional, self.runs.first()) {
            (Some(conventional), _) if shingled.clone().next().is_some() => {
                beside_conventional(conventional, shingled)
            }
            (_, Some(run)) => single(run),
            (_, None) => "Nothing was run.".to_string(),
        }
    }
}

/// What shingled disks do beside a conventional one; those that cleaned next to nothing are left out.
fn beside_conventional<'a>(
    conventional: &Run,
    shingled: impl Iterator<Item = &'a Run> + Clone,
) -> String {
    let name = conventional.label();
    let enough = |run: &&Run| run.rewrites.bands_rewritten >= REWRITES_CONCLUSIVE_MIN;
    let told = || {
        shingled.clone().filter(enough).filter_map(|run| {
            let speed_up = run.speed_up(conventional)?;
            Some((run, speed_up, run.times_that_of(conventional)?))
        })
    };
    let by_speed = |a: &(&Run, f64, String), b: &(&Run, f64, String)| a.1.total_cmp(&b.1);
    let (Some((best, _, best_times)), Some((worst, _, worst_times))) =
        (told().max_by(by_speed), told().min_by(by_speed))
    else {
        let most = shingled.map(|run| run.rewrites.bands_rewritten).max().unwrap_or(0);
        return format!(
            "Inconclusive beside the conventional disk {name}: {} bands were rewritten at most, too few \
             to tell what cleaning costs.",
            count(most)
        );
    };
    let tail = |run: &Run| optional(run.costs.response_ms.p99_9);
    let slower = match std::ptr::eq(best, worst) {
        true => String::new(),
        false => format!(", {} {worst_times}", worst.label()),
    };
    format!(
        "Beside the conventional disk {name}: {} needs {best_times}{slower}; one request in a \
         thousand takes {} ms or more on {}, {} ms on {name}.",
        best.label(),
        tail(worst),
        worst.label(),
        tail(conventional)
    )
}

impl Contest<'_> {
    fn sentence(&self) -> String {
        let (best, reference) = (self.best, self.reference);
        let name = best.label();
        let other = match settings(best).is_empty() {
            true => reference.system.clone(),
            false => format!("{} at the same settings", reference.system),
        };
        if reference.rewrites.bands_rewritten < REWRITES_CONCLUSIVE_MIN {
            return format!(
                "Inconclusive: {} rewrote only {} bands, too few to tell systems apart.",
                reference.label(),
                count(reference.rewrites.bands_rewritten)
            );
        }
        let bytes = match (best.rewrites.band_bytes_written, reference.rewrites.band_bytes_written)
        {
            (ours, theirs) if ours >= theirs => {
                return format!("No system rewrites fewer band bytes than {other}.");
            }
            (0, _) => format!("{name} rewrites no band at all"),
            (ours, theirs) => {
                let factor = factor(theirs as f64 / ours as f64);
                format!("{name} rewrites {factor} fewer band bytes than {other}")
            }
        };
        let time = match best.pace_beside(reference) {
            Some(pace) => format!(" {pace}"),
            None => String::new(),
        };
        let few = few_rewrites(&name, best.rewrites.bands_rewritten, "band");
        format!("{bytes}{time}.{few}{}", self.others())
    }

    /// How the best rival and the conventional disk compare with the best, in a second sentence.
    fn others(&self) -> String {
        let best = self.best;
        let rival = self.rival.map(|rival| {
            let bytes = match best.rewrites.band_bytes_written {
                0 => None,
                ours => {
                    let theirs = rival.rewrites.band_bytes_written as f64;
                    Some(format!("{} its band bytes", factor(theirs / ours as f64)))
                }
            };
            let facts: Vec<String> = bytes.into_iter().chain(rival.times_that_of(best)).collect();
            format!("the best rival, {}, {}", rival.system, facts.join(" and "))
        });
        let conventional = self.conventional.and_then(|disk| {
            let times = disk.times_that_of(best)?;
            Some(format!("the conventional disk, {}, {times}", disk.system))
        });
        let parts: Vec<String> = rival.into_iter().chain(conventional).collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!(" Beside it: {}.", parts.join("; ")),
        }
    }
}

fn single(run: &Run) -> String {
    let work = format!("{} served {} requests", run.label(), count(run.host.requests));
    match run.rewrites.write_amplification.host {
        Some(host) => format!(
            "{work}, rewrote {} bands and wrote {} band bytes for each byte the host wrote.",
            count(run.rewrites.bands_rewritten),
            number(host)
        ),
        None if run.is_untimed() => format!("{work}."),
        None => format!("{work}; median response {} ms.", optional(run.costs.response_ms.p50)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::no_cleaning::NoCleaning;
    use super::super::report::{DiskUse, ReplayMode};
    use super::super::table::TableStyle;
    use super::*;

    fn run(system: &str, band_bytes: u64, finish_s: f64) -> Run {
        let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
        run.log.bands = Some(10);
        run.cache.capacity_blocks = Some(100);
        run.rewrites.bands_rewritten = 200;
        run.rewrites.band_bytes_written = band_bytes;
        run.costs.finish_s = finish_s;
        // Disks may be busiest where the host waits least: no sentence is about that.
        run.costs.io_time_s.total = 1.0 / finish_s;
        run
    }

    fn report(runs: Vec<Run>) -> Report {
        Report::of_runs(runs)
    }

    #[test]
    fn the_headline_says_by_how_much() {
        let runs = vec![
            run("smr-only", 1, 1.0),
            run("opt", 5, 1.0),
            run("lru", 4100, 23.0),
            run("pore", 1000, 10.0),
        ];
        let mut report = report(runs);
        report.runs[0].cache.capacity_blocks = None;
        assert_eq!(
            report.headline(),
            "pore rewrites 4.1x fewer band bytes than lru and needs 2.3x less time."
        );
        report.runs[3].rewrites.band_bytes_written = 9999;
        assert_eq!(report.headline(), "No system rewrites fewer band bytes than lru.");
        report.runs[2].rewrites.bands_rewritten = 12;
        assert!(report.headline().starts_with("Inconclusive: lru rewrote only 12 bands"));
    }

    #[test]
    fn only_equal_settings_are_compared_and_the_best_rival_and_the_conventional_disk_are_named() {
        let at = |mut run: Run, capacity: &str| {
            let capacity = serde_json::Value::from(capacity);
            run.parameters.insert("cache.capacity".into(), capacity);
            run
        };
        let mut conventional = run("cmr-only", 0, 50.0);
        (conventional.log.bands, conventional.cache.capacity_blocks) = (None, None);
        conventional.costs.seek_time_s = 10.0;
        let mut report = report(vec![
            conventional,
            at(run("lru", 56_000, 100.0), "1 %"),
            at(run("lru", 28_000, 80.0), "5 %"),
            at(run("lru-band", 3_000, 18.0), "5 %"),
            at(run("opt", 1, 1.0), "5 %"),
            at(run("pore", 20_000, 40.0), "1 %"),
            at(run("pore", 1_000, 10.0), "5 %"),
        ]);
        assert_eq!(
            report.headline(),
            "pore capacity=5 % rewrites 28x fewer band bytes than lru at the same settings and needs \
             8.0x less time. Beside it: the best rival, lru-band, 3.0x its band bytes and 1.8x its \
             time; the conventional disk, cmr-only, 5.0x its time."
        );
        // Without a run of equal settings there is nothing to compare it with.
        report.runs.retain(|run| run.system == "pore");
        assert!(report.headline().starts_with("pore capacity=1 % served 0"));
    }

    #[test]
    fn shingled_disks_are_set_beside_the_conventional_one_unless_nothing_was_cleaned() {
        let disk = |name: &str, busy_s: f64, p99_9: f64| {
            let mut run = run(name, 1, busy_s);
            run.cache.capacity_blocks = None;
            run.costs.response_ms.p99_9 = Some(p99_9);
            run
        };
        let mut conventional = disk("cmr-only", 10.0, 58.0);
        (conventional.log.bands, conventional.costs.seek_time_s) = (None, 1.0);
        let mut report = report(vec![
            conventional,
            disk("st8000as0002", 11.0, 939.0),
            disk("st5000as0011", 9.0, 1200.0),
        ]);
        assert_eq!(
            report.headline(),
            "Beside the conventional disk cmr-only: st5000as0011 needs 0.90x its time, st8000as0002 \
             1.1x its time; one request in a thousand takes 939 ms or more on st8000as0002, 58.0 ms on cmr-only."
        );
        // One disk is conventional, an array of such disks is something else.
        report.runs[0].disks = vec![DiskUse::default(); 2];
        assert!(!report.headline().contains("conventional"), "{}", report.headline());
        report.runs[0].disks.clear();
        for run in &mut report.runs[1..] {
            run.rewrites.bands_rewritten = 0;
            run.log.no_cleaning = Some(NoCleaning {
                log_fill: 0.03,
                log_went_round: false,
                would_show: Some("--drive-scale 64".into()),
            });
        }
        assert_eq!(
            report.headline(),
            "Inconclusive beside the conventional disk cmr-only: 0 bands were rewritten at most, too few \
             to tell what cleaning costs."
        );
        let table = report.to_table(TableStyle::Plain);
        assert!(
            table.contains(
                "st8000as0002, st5000as0011: the log never filled (3.0 % in use at the end): these figures \
                 exclude cleaning;\n--drive-scale 64 would show it.\n"
            ),
            "{table}"
        );
        assert!(report.to_html().contains("<p class=\"notice\">st8000as0002, "));
    }

    #[test]
    fn a_winner_that_rewrote_little_itself_is_said_to_have() {
        let mut report = report(vec![run("lru", 5100, 20.0), run("ride", 100, 10.0)]);
        let says = |report: &mut Report, rewritten: u64| {
            report.runs[1].rewrites.bands_rewritten = rewritten;
            report.headline()
        };
        let start = "ride rewrites 51x fewer band bytes than lru and needs 2.0x less time.";
        assert_eq!(says(&mut report, 100), start);
        assert_eq!(
            says(&mut report, 2),
            format!("{start} ride rewrote only 2 bands, too few to say by how much.")
        );
        assert_eq!(
            says(&mut report, 1),
            format!("{start} ride rewrote only 1 band, too few to say by how much.")
        );
        report.runs[1].rewrites.band_bytes_written = 0;
        assert_eq!(
            says(&mut report, 0),
            "ride rewrites no band at all and needs 2.0x less time. ride rewrote no band, too few to \
             say by how much."
        );
        let segments = |system: &str, rewritten: u64, finish_s: f64| {
            let mut run = run(system, 0, finish_s);
            (run.log.bands, run.cache.capacity_blocks) = (None, None);
            run.host.requests = 1000;
            let counts = [("segments_rewritten".to_string(), rewritten)];
            run.nodes.insert("disk".into(), counts.into());
            run
        };
        report.runs = vec![segments("hwsr", 102, 20.0), segments("s-block", 2, 10.0)];
        assert_eq!(
            report.headline(),
            "s-block rewrites 51x fewer segments than hwsr; hwsr needs 2.0x its time. s-block rewrote \
             only 2 segments, too few to say by how much."
        );
    }

    #[test]
    fn the_table_the_headline_and_the_page_agree_on_who_is_faster() {
        let disk = |name: &str, finish_s: f64, bands: Option<u64>| {
            let mut run = run(name, 1, finish_s);
            (run.log.bands, run.cache.capacity_blocks) = (bands, None);
            run.costs.seek_time_s = 1.0;
            run
        };
        let report =
            report(vec![disk("cmr-only", 10.0, None), disk("st5000as0011", 20.0, Some(10))]);
        let headline = report.headline();
        assert!(headline.contains("needs 2.0x its time"), "{headline}");
        let table = report.to_table(TableStyle::Plain);
        let row = table.lines().find(|line| line.starts_with("st5000as0011"));
        assert!(row.is_some_and(|row| row.contains(" 0.50x ")), "{table}");
        let page = report.to_html();
        assert!(page.contains("data-value=\"speed-up x\""));
        assert!(page.contains("data-value=\"0.5\">0.50x</td>"));
    }

    #[test]
    fn one_run_and_none_have_a_headline_too() {
        assert_eq!(report(vec![]).headline(), "Nothing was run.");
        let mut report = report(vec![run("pore", 8, 1.0)]);
        report.runs[0].rewrites.write_amplification.host = Some(2.0);
        assert_eq!(
            report.headline(),
            "pore served 0 requests, rewrote 200 bands and wrote 2.00 band bytes for each byte the \
             host wrote."
        );
    }
}
