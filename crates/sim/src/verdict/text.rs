//! The answer for a terminal and as a page.

use super::cache::{Advice, CacheTrial};
use super::drive::{Cleaning, DriveVerdict, Outcome, Over, mib_per_s};
use super::question::Verdict;
use crate::rows::{Rows, in_columns, in_page};
use imbrex_report::format::{bytes, count, duration, number, optional, percent, wrapped};
use imbrex_report::page::{escape, open_section, plain_document};
use std::fmt::Write;

const DRIVE_HEADER: [&str; 10] = [
    "drive",
    "verdict",
    "mean ms",
    "p99.9 ms",
    "longest s",
    "behind s",
    "log full after",
    "sustained MiB/s",
    "cleaning h/day",
    "idle h/day",
];

const CACHE_HEADER: [&str; 9] = [
    "cache",
    "system",
    "drive",
    "keeps up",
    "later",
    "mean ms",
    "p99.9 ms",
    "longest s",
    "behind s",
];

impl Outcome {
    /// In words.
    fn words(self) -> &'static str {
        match self {
            Outcome::KeepsUp => "keeps up",
            Outcome::Stalls => "keeps up, stalls",
            Outcome::FallsBehindLater => "falls behind later",
            Outcome::FallsBehind => "falls behind",
        }
    }
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_string()
}

fn seconds(ms: Option<f64>) -> String {
    optional(ms.map(|ms| ms / 1e3))
}

impl DriveVerdict {
    /// What the table says of when its log is full.
    fn log_full(&self) -> String {
        match (self.is_shingled, &self.over) {
            (false, _) => "no log".to_string(),
            (true, None) => "-".to_string(),
            (true, Some(over)) => match over.log_full_after_s {
                Some(after_s) => duration(after_s),
                None => "does not fill".to_string(),
            },
        }
    }

    fn row(&self) -> Vec<String> {
        let served = self.over.as_ref().map_or(&self.as_recorded, |over| &over.served);
        let of = |hours: fn(&Cleaning) -> f64| optional(self.cleaning.as_ref().map(hours));
        let rate = number(self.sustained.write_mib_per_s);
        vec![
            self.drive.clone(),
            self.outcome.words().to_string(),
            optional(served.mean_ms),
            optional(served.p99_9_ms),
            seconds(served.longest_ms),
            number(served.behind_s),
            self.log_full(),
            if self.sustained.is_for_good { rate } else { format!("{rate} *") },
            of(|cleaning| cleaning.needed_h_per_day),
            of(|cleaning| cleaning.idle_h_per_day),
        ]
    }

    /// What becomes of the workload on the drive, in sentences.
    fn sentences(&self) -> String {
        let longest = |served: &super::Served| duration(served.longest_ms.unwrap_or(0.0) / 1e3);
        let rounds = |over: &Over| format!("{} rounds", count(u64::from(over.rounds)));
        let mut text = match (self.outcome, &self.over) {
            (Outcome::FallsBehind, _) => format!(
                "falls behind the recorded pace: the last answer comes {} after the last request.",
                duration(self.as_recorded.behind_s)
            ),
            (Outcome::FallsBehindLater, Some(over)) => format!(
                "keeps up with one round, and not with {}: {} behind at their end.",
                rounds(over),
                duration(over.served.behind_s)
            ),
            (Outcome::Stalls, _) => {
                let served = self.over.as_ref().map_or(&self.as_recorded, |over| &over.served);
                format!(
                    "keeps up, but a request may wait for {}; Linux gives a command up after 30 s.",
                    longest(served)
                )
            }
            (_, None) => {
                format!("keeps up; the longest request takes {}.", longest(&self.as_recorded))
            }
            (_, Some(over)) => format!(
                "keeps up over {}; the longest request takes {}.",
                rounds(over),
                longest(&over.served)
            ),
        };
        if let Some(over) = &self.over {
            let _ = match over.log_full_after_s {
                Some(after_s) => write!(text, " Its log is full after {}.", duration(after_s)),
                None => write!(
                    text,
                    " Its log does not fill: {} % of it is in use at the end.",
                    percent(Some(over.log_fill))
                ),
            };
        }
        text.push_str(&self.rate_and_cleaning());
        text
    }

    fn rate_and_cleaning(&self) -> String {
        let mut text = format!(
            " Back to back it takes {} MiB/s of these writes{}.",
            number(self.sustained.write_mib_per_s),
            match self.sustained.is_for_good {
                true => "",
                false => " as long as nothing is cleaned",
            }
        );
        if let Some(cleaning) = &self.cleaning {
            let _ = write!(
                text,
                " A day of such writes costs {} h of cleaning, and leaves the drive idle for {} h.",
                number(cleaning.needed_h_per_day),
                number(cleaning.idle_h_per_day)
            );
        }
        if self.excludes_cleaning() {
            text.push_str(" No band was rewritten: the response times exclude cleaning.");
        }
        if self.is_shingled {
            let _ = write!(text, " {}.", upper(&self.standing.words()));
        }
        text
    }

    fn commands(&self) -> Vec<&str> {
        let over = self.over.as_ref().map(|over| over.served.command.as_str());
        let once = [self.as_recorded.command.as_str()];
        let later = [self.sustained.command.as_str()];
        once.into_iter().chain(over).chain(later).collect()
    }
}

impl CacheTrial {
    fn row(&self) -> Vec<String> {
        vec![
            format!("{} ({} %)", bytes(self.cache_bytes), percent(Some(self.share_of_touched))),
            self.system.clone(),
            self.drive.clone(),
            yes_or_no(self.served.keeps_up),
            match &self.over {
                Some(over) => format!("{} ({})", yes_or_no(over.served.keeps_up), over.rounds),
                None => "-".to_string(),
            },
            optional(self.served.mean_ms),
            optional(self.served.p99_9_ms),
            seconds(self.served.longest_ms),
            number(self.served.behind_s),
        ]
    }

    fn named(&self) -> String {
        let mean = optional(self.served.mean_ms);
        format!("`{}` over {}, {mean} ms in the mean", self.system, self.drive)
    }
}

impl Advice {
    fn sentence(&self, drives: &[DriveVerdict]) -> String {
        let size = format!(
            "{} ({} % of what is touched)",
            bytes(self.best.cache_bytes),
            percent(Some(self.best.share_of_touched))
        );
        let has_shingled = drives.iter().any(|drive| drive.is_shingled);
        let mut text = match (self.is_needed, self.turns_it) {
            _ if !has_shingled => format!("With a cache of {size} the best is"),
            (false, _) => format!(
                "No cache is needed: every shingled drive keeps up alone. With a cache of {size} the best is"
            ),
            (true, true) => format!(
                "Not every shingled drive does alone; a cache of {size} turns it. The best of that size is"
            ),
            (true, false) => format!(
                "Not every shingled drive does alone, and with a cache of {size} none keeps up. The best of that \
                 size is"
            ),
        };
        let _ = write!(text, " {}", self.best.named());
        if let Some(other) = &self.best_shingled {
            let _ = write!(text, "; on a shingled disk {}", other.named());
        }
        let alone = drives.iter().filter_map(|drive| {
            Some((drive.as_recorded.mean_ms?, drive)).filter(|_| drive.is_shingled)
        });
        if let Some((mean_ms, drive)) = alone.min_by(|a, b| a.0.total_cmp(&b.0)) {
            let _ = write!(text, ". Without one it is {} with {} ms", drive.drive, number(mean_ms));
        }
        text + "."
    }
}

impl Verdict {
    fn head(&self) -> Vec<String> {
        let facts = &self.facts;
        let kind = self.workload.kind.describe();
        let pace = facts.write_bytes_per_day.map_or_else(String::new, |per_day| {
            format!(
                ", {} MiB/s or {} a day at this pace",
                number(mib_per_s(per_day)),
                bytes(per_day as u64)
            )
        });
        vec![
            format!(
                "{}: {} requests in {}, {}.",
                self.workload.path,
                count(facts.requests),
                duration(facts.duration_s),
                kind
            ),
            format!(
                "It writes {}{pace}, and touches {}.",
                bytes(facts.write_bytes),
                bytes(facts.touched_bytes)
            ),
        ]
    }

    fn drive_rows(&self) -> Rows {
        let header = vec![DRIVE_HEADER.map(str::to_string).to_vec()];
        header.into_iter().chain(self.drives.iter().map(DriveVerdict::row)).collect()
    }

    fn cache_rows(&self) -> Rows {
        let header = vec![CACHE_HEADER.map(str::to_string).to_vec()];
        header.into_iter().chain(self.caches.iter().map(CacheTrial::row)).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.drives.iter().any(|drive| !drive.sustained.is_for_good) {
            notes.push(
                "* the log was not full in the rounds that were made, and a full one takes less. More rounds: \
                 --requests-max."
                    .to_string(),
            );
        }
        notes
    }

    fn cache_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.caches.iter().any(|trial| trial.over.is_some()) {
            notes.push(
                "later: whether the cache keeps up over so many rounds, in which the log below it is filled twice; \
                 only of the best of a size."
                    .to_string(),
            );
        }
        let left_out = self.left_out.iter();
        notes.extend(left_out.map(|why| format!("A cache was left out: {why}.")));
        notes
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.head() {
            text.push_str(&wrapped(&line));
        }
        let _ = writeln!(text, "\n{}\n", in_columns(&self.drive_rows(), 2));
        for note in self.notes() {
            text.push_str(&wrapped(&note));
        }
        for drive in &self.drives {
            let said = format!("{} ({}) {}", drive.drive, drive.model, drive.sentences());
            let _ = write!(text, "\n{}", wrapped(&said));
            for command in drive.commands() {
                let _ = writeln!(text, "  {command}");
            }
        }
        if let Some(advice) = &self.advice {
            let _ = writeln!(text, "\n{}\n", in_columns(&self.cache_rows(), 3));
            for note in self.cache_notes() {
                text.push_str(&wrapped(&note));
            }
            text.push_str(&wrapped(&advice.sentence(&self.drives)));
            for trial in [Some(&advice.best), advice.best_shingled.as_ref()].into_iter().flatten() {
                let _ = writeln!(text, "  {}", trial.served.command);
            }
        }
        text
    }

    /// As a page.
    pub fn page(&self) -> String {
        let title = format!("Verdict on {}", self.workload.path);
        let mut body = format!("<h1>{}</h1>\n", escape(&title));
        for line in self.head() {
            let _ = writeln!(body, "<p>{}</p>", escape(&line));
        }
        if let Some(advice) = &self.advice {
            let _ = writeln!(
                body,
                "<p><strong>{}</strong></p>",
                escape(&advice.sentence(&self.drives).replace('`', ""))
            );
        }
        let why = "What becomes of the workload on each drive alone, at its time stamps";
        open_section("Drives", why, &mut body);
        in_page("Drives", &self.drive_rows(), &mut body);
        for note in self.notes() {
            let _ = writeln!(body, "<p>{}</p>", escape(&note));
        }
        for drive in &self.drives {
            let name = format!("{} ({})", drive.drive, drive.model);
            let _ = writeln!(
                body,
                "<h3>{}</h3>\n<p>{}</p>",
                escape(&name),
                escape(&upper(&drive.sentences()))
            );
            commands_in_page(&drive.commands(), &mut body);
        }
        body.push_str("</section>\n");
        if let Some(advice) = &self.advice {
            let why = "The ready-made stacks of one disk and one cache, at the same time stamps";
            open_section("Caches", why, &mut body);
            in_page("Caches", &self.cache_rows(), &mut body);
            for note in self.cache_notes() {
                let _ = writeln!(body, "<p>{}</p>", escape(&note));
            }
            let both = [Some(&advice.best), advice.best_shingled.as_ref()].into_iter().flatten();
            let commands: Vec<&str> = both.map(|trial| trial.served.command.as_str()).collect();
            commands_in_page(&commands, &mut body);
            body.push_str("</section>\n");
        }
        plain_document(&title, &body)
    }
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().to_string() + chars.as_str())
}

fn commands_in_page(commands: &[&str], body: &mut String) {
    let _ = writeln!(body, "<pre>{}</pre>", escape(&commands.join("\n")));
}
