//! A mirror over slices of two disks: every promise holds whichever disk is lost, wherever in the
//! life of the mirror the power goes, and whatever is there when it comes back.

mod case;
mod disk;
mod door;
mod life;
mod operator;
mod story;
#[path = "../../../../../core/tests/toys/mirror/mod.rs"]
mod toy;

use case::{Presence, Reached, Recorded};
use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::image::Mode;
use imbrex_sim::crashtest::trial::catching;
use life::Wrong;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use story::Phase;
use toy::Flaw;

/// Cases of the everyday suite.
const CASES: u64 = 2_400;
/// Cases of a long run.
const CASES_AT_LENGTH: u64 = 200_000;
/// Cases of one run.
const CASES_OF_RUN: u64 = 12;
/// Cases in which a bug must be found.
const CASES_TO_FIND: u64 = 5_000;

/// Plays the cases of one run.
fn run(seed: u64, wrong: Wrong, reached: &mut Reached) -> Result<(), String> {
    catching(|| {
        let recorded =
            Recorded::first_life(seed, wrong).map_err(|what| format!("seed {seed}: {what}"))?;
        (0..CASES_OF_RUN).try_for_each(|number| recorded.case(number, reached))
    })
    .map_err(|panic| format!("seed {seed}: {panic}"))
    .and_then(|result| result)
}

/// Plays the runs of so many cases on two threads.
fn campaign(cases: u64) -> (Reached, Vec<String>) {
    let next = AtomicU64::new(0);
    let totals = Mutex::new((Reached::default(), Vec::new()));
    let work = || {
        let mut reached = Reached::default();
        let mut failures = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed * CASES_OF_RUN >= cases {
                break;
            }
            failures.extend(run(seed, Wrong::default(), &mut reached).err());
        }
        let mut totals = totals.lock().expect("no thread panics");
        totals.0.add(&reached);
        totals.1.extend(failures);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    totals.into_inner().expect("no thread panics")
}

/// Cases until something wrong was found, and what that was.
fn cases_to_find(wrong: Wrong) -> (u64, Option<String>) {
    let mut reached = Reached::default();
    for seed in 0..CASES_TO_FIND / CASES_OF_RUN {
        if let Err(what) = run(seed, wrong, &mut reached) {
            return (reached.cases, Some(what));
        }
    }
    (reached.cases, None)
}

fn print(reached: &Reached) {
    let table = |title: &str, names: Vec<&str>, counts: &[u64]| {
        let counts = names.iter().zip(counts);
        let words: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
        println!("{title}: {}", words.join(", "));
    };
    println!("{} cases", reached.cases);
    table("phase", Phase::ALL.map(Phase::name).to_vec(), &reached.by_phase);
    table("lost port", vec!["first", "second"], &reached.by_lost_port);
    table("mode", Mode::ALL.map(Mode::name).to_vec(), &reached.by_mode);
    let presences = Presence::NAMES.to_vec();
    table("opened with", presences.clone(), &reached.by_presence);
    table("refused", presences.clone(), &reached.refused);
    table("one port", presences, &reached.degraded);
    println!(
        "both ports whole {}, half rebuilt {}, cut before the new member was described {}, both \
         lost {}, later lives {}, blocks judged {}",
        reached.whole,
        reached.half_rebuilt,
        reached.undescribed,
        reached.ends_lost,
        reached.later_lives,
        reached.blocks_judged
    );
}

/// The cases that `IMBREX_MIRROR_CASES` asks for, or else so many.
fn cases_or(ordinary: u64) -> u64 {
    let asked = std::env::var("IMBREX_MIRROR_CASES").ok();
    asked.map_or(ordinary, |text| text.parse().expect("a number of cases"))
}

#[test]
fn a_mirror_loses_nothing() {
    nothing_is_lost(cases_or(CASES));
}

#[test]
#[ignore = "some minutes"]
fn a_mirror_loses_nothing_at_length() {
    nothing_is_lost(cases_or(CASES_AT_LENGTH));
}

fn nothing_is_lost(cases: u64) {
    let (reached, failures) = campaign(cases);
    print(&reached);
    let few: Vec<&String> = failures.iter().take(10).collect();
    assert!(failures.is_empty(), "{} runs failed: {few:#?}", failures.len());
    assert!(reached.cases >= cases);
    let all_modes = &reached.by_mode[..Mode::ALL.len() - 1];
    for counts in [&reached.by_phase[..], &reached.by_lost_port, all_modes, &reached.by_presence] {
        assert!(counts.iter().all(|count| *count > 0), "{reached:?}");
    }
    let [described, crashed, alone, lacking, swapped, foreign, former, gone_on, older] =
        Presence::NAMES.map(|name| Presence::NAMES.iter().position(|other| *other == name));
    let at = |counts: &[u64], presence: Option<usize>| counts[presence.expect("a presence")];
    for presence in [described, crashed, alone, foreign, former, gone_on, older] {
        assert!(at(&reached.degraded, presence) > 0, "{reached:?}");
    }
    for presence in [lacking, swapped] {
        assert!(at(&reached.refused, presence) > 0, "{reached:?}");
    }
    let others = [
        reached.whole,
        reached.half_rebuilt,
        reached.undescribed,
        reached.later_lives,
        reached.ends_lost,
    ];
    assert!(others.iter().all(|count| *count > 0), "{reached:?}");
}

/// Says of each thing that is wrong after how many cases it was found.
fn all_are_found(all: impl IntoIterator<Item = (String, Wrong)>) {
    let mut unnoticed = Vec::new();
    for (name, wrong) in all {
        match cases_to_find(wrong) {
            (cases, Some(what)) => {
                println!("{name}: {cases} cases, {what}");
                // What an assertion of the search says counts, and a slip of the code does not.
                let is_slip = what.contains("panic: ") && !what.contains("panic: the stack ");
                assert!(!is_slip, "{name}: {what}");
            }
            (_, None) => unnoticed.push(name),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

/// The bugs that a ledger with several copies can have.
const BUGS_OF_COPIES: [PlantedBug; 4] = [
    PlantedBug::LostCopyUnrecorded,
    PlantedBug::RecordedOutCopyTaken,
    PlantedBug::OlderCopyTaken,
    PlantedBug::ReplacementUnrecorded,
];

#[test]
fn bugs_planted_in_the_copies_of_a_ledger_are_found() {
    all_are_found(BUGS_OF_COPIES.map(|bug| {
        let wrong = Wrong { plant: Some(bug), ..Wrong::default() };
        (bug.name().to_string(), wrong)
    }));
}

#[test]
fn a_number_that_is_used_again_is_found() {
    let wrong = Wrong { reuses_numbers: true, ..Wrong::default() };
    all_are_found([("member-number-reused".to_string(), wrong)]);
}

/// What can be wrong with the mirror itself.
const FLAWS: [(&str, Flaw); 6] = [
    ("replaced-before-recorded", Flaw::ReplacedBeforeRecorded),
    ("rebuild-skips-new-writes", Flaw::RebuildSkipsNewWrites),
    ("rebuild-without-lock", Flaw::RebuildWithoutLock),
    ("no-comparison-after-crash", Flaw::NoComparisonAfterCrash),
    ("flush-of-one-port", Flaw::FlushOfOnePort),
    ("answer-before-loss-is-recorded", Flaw::AnswerBeforeLossIsRecorded),
];

#[test]
fn what_is_wrong_with_a_mirror_is_found() {
    all_are_found(FLAWS.map(|(name, flaw)| {
        let wrong = Wrong { flaw, ..Wrong::default() };
        (name.to_string(), wrong)
    }));
}
