//! A cache of a stack that is only read: it recovers as any other, says what was acknowledged, and writes nothing
//! once it is up.

use crate::common::oracle::{Ask, MayFail};
use crate::durable::{BLOCKS, SET, durable, random_asks, up};
use crate::power::Rig;
use crate::power_disk::{Platter, Survivors};
use crate::stacks::policies;
use imbrex_core::counters::Gauge;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;
use imbrex_core::rng::Rng;

const BLOCK_0: Extent = Extent::new(0, 1);

#[test]
fn a_cache_that_is_only_read_keeps_nothing_new_and_lets_nothing_go() {
    let mut overfull = 0;
    for (number, (name, policy)) in (0..).zip(policies(BLOCKS)) {
        for seed in 0..8 {
            let mut rng = Rng::new(seed, 50 + number);
            let mut rig = Rig::new(durable(20, policy.clone()), BLOCKS, seed);
            let mut engine = up(rig.open(Start::Format(SET)));
            rig.power.set(200 + rng.below(600));
            let asks = random_asks(&mut rng, 600, BLOCKS - 2, 8);
            let ended = rig.play(&mut engine, asks, 8).expect("no mistake");
            assert!(!ended, "the power fails in the middle of the work");
            // The end of the process alone: whatever was answered is there.
            rig.cut(Survivors::All, &mut rng);

            rig.is_read_only = true;
            let mut engine = up(rig.open(Start::Recover(Some(SET))));
            assert_eq!(rig.play(&mut engine, vec![Ask::Flush], 1), Ok(true));
            let node = rig.node.expect("a cache");
            let counts = |engine: &Engine| {
                let counts = engine.stack.counts(node);
                [Gauge::CachedBlocks, Gauge::DirtyBlocks].map(|gauge| counts.gauge(gauge))
            };
            let cached = counts(&engine);
            overfull += u64::from(cached[0] > 20);
            let changes = |rig: &Rig| {
                let of = |platter: &Platter| platter.writes + platter.flushes;
                of(&rig.flash.borrow()) + of(&rig.backing.borrow())
            };
            let before = changes(&rig);
            rig.look_at_everything(&mut engine)
                .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            let asks = vec![
                Ask::Write(BLOCK_0),
                Ask::Read(Extent::new(5, 30)),
                Ask::Trim(BLOCK_0),
                Ask::Forced(BLOCK_0),
                Ask::Flush,
            ];
            let failed = rig.play_with_faults(&mut engine, asks.clone(), 1, MayFail::Changes);
            assert_eq!(failed, Ok(vec![asks[0], asks[2], asks[3]]), "{name}");
            assert!(rig.close(&mut engine));
            assert_eq!(changes(&rig), before, "{name}, seed {seed}");
            assert_eq!(counts(&engine), cached, "{name}, seed {seed}");
            assert_eq!(engine.buffers.allocated(), 0);
        }
    }
    assert!(overfull > 0, "no recovery found more than the cache may hold");
}
