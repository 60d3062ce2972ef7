//! Policies that come from outside: one that is LRU is held against every rule and counts as LRU does, and one
//! that fails ends what it is asked for.

use crate::common::brought::{NAME, Outside, Wrong, outside_lru};
use crate::common::check::check;
use crate::common::harness::random_steps;
use crate::exact::{BLOCKS, MODES, capacity, run};
use crate::stacks::{cache_stack, settings};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, CacheSettingsError, PolicySettings};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::Layer;
use imbrex_core::operation::{Operation, Tag};
use imbrex_core::saved::SavedWriter;
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BlockCount, Instant};

fn outside() -> PolicySettings {
    outside_lru(0, Wrong::Nothing)
}

#[test]
fn it_counts_what_lru_does_from_inside() {
    let mut evictions = 0;
    for seed in 0..300 {
        let (capacity, mode) = (capacity(seed), MODES[(seed / 6 % 3) as usize]);
        let of = |policy| {
            let settings = settings(capacity, (seed % 4) as u32, mode, policy);
            run(settings, seed, random_steps(seed, 400, BLOCKS, 6))
        };
        let found = of(outside());
        assert_eq!(found, of(PolicySettings::LRU), "seed {seed}");
        evictions += found.dirty_evictions + found.clean_evictions;
    }
    assert!(evictions > 10_000, "{evictions}");
}

#[test]
fn it_keeps_every_rule_at_every_tiny_size() {
    for mode in [CacheMode::ReadWrite, CacheMode::WriteOnly] {
        check(
            &format!("{NAME}, {mode:?}"),
            &move |seed| {
                let (capacity, slots) = (1 + seed / 4 % 20, 1 + seed % 5 % 4);
                let settings = settings(capacity, slots as u32, mode, outside());
                let (stack, disks, _) = cache_stack(settings, BLOCKS, seed, 1_000);
                (stack, disks)
            },
            240,
            0,
        );
    }
}

/// Writes blocks one by one to a cache of three; gives why the policy cannot go on.
fn failure(fails_at: u64, with: Wrong) -> String {
    let settings = settings(3, 2, CacheMode::ReadWrite, outside_lru(fails_at, with));
    let (mut stack, _, _) = cache_stack(settings, BLOCKS, 1, 1_000);
    let mut buffers = Buffers::new(ContentKind::Counted);
    for block in 0..20 {
        let (tag, extent) = (Tag(block), Extent::new(block, 1));
        let buffer = buffers.allocate(1);
        let arrival = Arrival { tag, operation: Operation::WRITE, extent, buffer };
        stack.handle_request(Instant(0), arrival, &mut buffers);
    }
    // Who leaves is decided when a request comes, before any disk has done anything.
    let refused = stack.poll_reply().map(|reply| reply.result);
    assert_eq!(refused, Some(Err(IoError::ShutDown)), "{with:?}");
    let failure = stack.failure().unwrap_or_else(|| panic!("{with:?}: nothing is said"));
    assert_eq!(failure.is::<Outside>(), matches!(with, Wrong::Fails | Wrong::NoCode));
    failure.to_string()
}

#[test]
fn one_that_fails_ends_what_it_is_asked_for_and_says_why() {
    let of_victims = |words: &str| format!("policy = \"{NAME}\": victims: {words}");
    let expected = [
        (Wrong::NoCode, "the code has failed".to_string()),
        (Wrong::Fails, "the code has failed".to_string()),
        (Wrong::NoVictim, of_victims("there is none; accepted: some of the 3 blocks in the cache")),
        (
            Wrong::NotCached,
            of_victims("block 1099511627776 is not in the cache; accepted: some of the 3 that are"),
        ),
        (Wrong::Twice, of_victims("block 2 is there twice; accepted: each once")),
    ];
    for (with, words) in expected {
        assert_eq!(failure(3, with), words, "{with:?}");
    }
}

#[test]
fn it_cannot_be_durable() {
    let durability = Some(DurabilitySettings::default());
    let settings = CacheSettings { durability, ..settings(3, 2, CacheMode::ReadWrite, outside()) };
    let error = cache(settings).map(drop).expect_err("it was built");
    assert!(error.to_string().contains("policy test:lru in a durable cache"), "{error}");
}

#[test]
fn its_state_is_not_saved() {
    let mut cache = cache(settings(3, 2, CacheMode::ReadWrite, outside())).expect("a cache");
    let mut state = SavedWriter::default();
    cache.saved().expect("a state").save_into(&mut state);
    assert_eq!(state.obstacle(), Some("policy"));
}

fn cache(settings: CacheSettings) -> Result<Cache, CacheSettingsError> {
    let geometry = Geometry::plain(BlockCount(10_000), Media::SolidState);
    Cache::new(settings, &geometry, &geometry).map(|(cache, _)| cache)
}
