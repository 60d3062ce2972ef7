//! What a campaign says at its end.

use super::campaign::Totals;
use super::presence::Presence;
use super::reached::Reached;
use super::story::Phase;
use crate::crashtest::image::Mode;
use crate::crashtest::summary::{FailureLine, replay_command};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole of a campaign, for `--json`.
#[derive(Serialize)]
pub struct Summary<'a> {
    /// The stack.
    pub stack: &'a str,
    /// Seeds run, each with one first life.
    pub seeds: u64,
    /// Cases tried.
    pub cases: u64,
    /// Those that differ from every other of their seed.
    pub distinct: u64,
    /// Cases that failed.
    pub failures: Vec<FailureLine>,
    /// Cases by the member that goes, and by the phase.
    pub by_member: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Pairs of these with less than their share.
    pub below_share: Vec<String>,
    /// Cases by mode.
    pub by_mode: BTreeMap<&'static str, u64>,
    /// Openings by what was there.
    pub by_presence: BTreeMap<&'static str, Opened>,
    /// What else the cases have reached.
    pub reached: Others,
}

/// What has come of openings.
#[derive(Clone, Copy, Serialize)]
pub struct Opened {
    /// All.
    pub openings: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that went on without everything on every member.
    pub degraded: u64,
}

/// What else cases have reached.
#[derive(Clone, Copy, Serialize)]
pub struct Others {
    /// Cuts behind the loss of the member of the case.
    pub gone_before: u64,
    /// Openings with everything on every member.
    pub whole: u64,
    /// Cuts after a number was used up and before the new member was described.
    pub undescribed: u64,
    /// Lives after the first.
    pub later_lives: u64,
    /// First lives in which more was lost than the array can lack.
    pub ends_lost: u64,
    /// First lives to which a member came back that had been away.
    pub returned: u64,
    /// Openings without a disk that only another array of the stack has.
    pub without_other: u64,
    /// Blocks read and judged.
    pub blocks_judged: u64,
}

impl<'a> Summary<'a> {
    /// The summary of a campaign; `more` are the options that a replay needs beside seed and case.
    pub fn new(stack: &'a str, totals: &Totals, more: &str) -> Summary<'a> {
        let failure = |failure: &crate::crashtest::campaign::Failure| FailureLine {
            seed: failure.seed,
            point: failure.point,
            what: failure.what.clone(),
            replay: replay_command(stack, failure.seed, failure.point, more),
        };
        let Totals { reached, failures } = totals;
        let mut by_member: BTreeMap<String, BTreeMap<&'static str, u64>> = BTreeMap::new();
        for ((member, phase), count) in &reached.by_pair {
            *by_member.entry(member.to_string()).or_default().entry(phase).or_default() += count;
        }
        let opened = |(at, name): (usize, &'static str)| {
            let opened = Opened {
                openings: reached.by_presence[at],
                refused: reached.refused[at],
                degraded: reached.degraded[at],
            };
            (name, opened)
        };
        Summary {
            stack,
            seeds: reached.lives,
            cases: reached.cases,
            distinct: reached.distinct,
            failures: failures.iter().map(failure).collect(),
            by_member,
            below_share: totals.pairs_below_share(),
            by_mode: Mode::ALL.map(Mode::name).into_iter().zip(reached.by_mode).collect(),
            by_presence: Presence::NAMES.into_iter().enumerate().map(opened).collect(),
            reached: Others::of(reached),
        }
    }

    /// As text: the cases by member and phase, the openings by what was there, and the count of failures.
    pub fn to_text(&self) -> String {
        let phases = Phase::ALL.map(Phase::name).into_iter();
        let is_there = |phase: &&str| self.by_member.values().any(|it| it.contains_key(phase));
        let phases: Vec<&str> = phases.filter(is_there).collect();
        let mut members = table(["member"].into_iter().chain(phases.iter().copied()));
        for (member, counts) in &self.by_member {
            let of = |phase: &&str| counts.get(phase).copied().unwrap_or(0).to_string();
            let row = [member.clone()].into_iter().chain(phases.iter().map(of));
            members.add_row(row);
        }
        let mut presences = table(["opened with", "openings", "refused", "degraded"].into_iter());
        for name in Presence::NAMES {
            let Opened { openings, refused, degraded } = self.by_presence[name];
            let counts = [openings, refused, degraded].map(|count| count.to_string());
            presences.add_row([name.to_string()].into_iter().chain(counts));
        }
        let mut text = String::new();
        for mut table in [members, presences] {
            for column in table.column_iter_mut().skip(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let _ = writeln!(text, "{table}\n");
        }
        let Others {
            gone_before,
            whole,
            undescribed,
            later_lives,
            ends_lost,
            returned,
            without_other,
            blocks_judged,
        } = self.reached;
        let _ = writeln!(
            text,
            "the member gone before the cut {gone_before}, every member whole {whole}, cut before the \
             new member was described {undescribed}, later lives {later_lives}, too much lost \
             {ends_lost}, came back {returned}, without a disk of another array {without_other}, blocks judged {blocks_judged}"
        );
        for below in &self.below_share {
            let _ = writeln!(text, "less than its share: {below}");
        }
        let _ = writeln!(
            text,
            "{}: {} of {} cases failed, {} different, {} seeds",
            self.stack,
            self.failures.len(),
            self.cases,
            self.distinct,
            self.seeds
        );
        text
    }
}

fn table<'h>(header: impl Iterator<Item = &'h str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

impl Others {
    fn of(reached: &Reached) -> Others {
        Others {
            gone_before: reached.gone_before,
            whole: reached.whole,
            undescribed: reached.undescribed,
            later_lives: reached.later_lives,
            ends_lost: reached.ends_lost,
            returned: reached.returned,
            without_other: reached.without_other,
            blocks_judged: reached.blocks_judged,
        }
    }
}
