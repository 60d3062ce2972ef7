//! The rivals that know bands count and write exactly what naive models of them do, on a thousand random
//! traces of reads, writes and trims each.

use crate::common::harness::random_steps;
use crate::exact::{MODES, capacity, run_over, with_final_reads_of};
use crate::naive::Model;
use crate::naive_bands::{Most, Sac};
use crate::rivals::Counted;
use crate::stacks::{bands, sac, settings};
use imbrex_core::cache::{PolicySettings, SacSettings, ZoneSettings};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

const TRACES: u64 = 1000;

/// The blocks of the device and of the cache, and how many steps are made. In every tenth world the
/// cache is so large that clean blocks may cost more than dirty ones.
fn world(seed: u64) -> (u64, u64, u64) {
    match seed % 10 {
        9 => (900, 480, 900),
        _ => (240, capacity(seed), 400),
    }
}

/// Counts and writes the same, and has enough to decide.
fn agrees(policy: &PolicySettings, model: impl Fn(usize, u64) -> Box<dyn Model>) {
    let (mut hits, mut dirty, mut clean) = (0, 0, 0);
    for seed in 0..TRACES {
        let (blocks, capacity, steps) = world(seed);
        let mode = MODES[(seed / 10 % 3) as usize];
        let steps = random_steps(seed, steps, blocks, 6);
        let settings = settings(capacity, (seed % 4) as u32, mode, policy.clone());
        let found = run_over(settings, blocks, seed, steps.clone());
        let steps = with_final_reads_of(blocks, steps);
        let model = model(capacity as usize, blocks);
        let expected = Counted::run(model, capacity, mode, &steps);
        assert_eq!(found, expected, "{policy:?}, seed {seed}");
        hits += found.read_hits + found.write_hits;
        dirty += found.dirty_evictions;
        clean += found.clean_evictions;
    }
    println!("{hits} hits, {dirty} dirty and {clean} clean evictions");
    assert!(hits > 100_000 && dirty > 100_000 && clean > 50_000, "{hits}, {dirty}, {clean}");
}

#[test]
fn most_agrees_with_its_model() {
    agrees(&PolicySettings::Most(ZoneSettings::Bands), |capacity, blocks| {
        Box::new(Most { capacity, bands: bands(blocks), cached: BTreeSet::new() })
    });
}

#[test]
fn sac_agrees_with_its_model() {
    let dirty_by_choice = Rc::new(Cell::new(0));
    let in_bands = SacSettings { zones: ZoneSettings::Bands, ..sac() };
    agrees(&PolicySettings::Sac(in_bands), |capacity, blocks| {
        let (log, batch) = (sac().log_blocks.expect("a log"), sac().batch as usize);
        Box::new(Sac::new(capacity, bands(blocks), log, batch, Rc::clone(&dirty_by_choice)))
    });
    let dirty_by_choice = dirty_by_choice.get();
    println!("{dirty_by_choice} times dirty ones cost less");
    assert!(dirty_by_choice > 100, "{dirty_by_choice}");
}
