//! Keys of a run that name no node, where several nodes have their role: sums computed by hand.

use crate::arrays::replay;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::Run;
use imbrex_stack::StackConfig;
use std::fmt::Write as _;

/// Replays requests on nodes: each a direction, the first block and how many. They come a second
/// apart.
fn run(nodes: &str, requests: &[(&str, u64, u64)]) -> Run {
    let text = format!("name = \"roles\"\n{nodes}");
    let config = StackConfig::from_text("roles.toml", &text, &[]);
    let mut trace = String::new();
    for (number, (direction, start, blocks)) in (0..).zip(requests) {
        let time = 128_166_386_787_580_000u64 + 10_000_000 * number;
        let (start, bytes) = (start * BLOCK_BYTES, blocks * BLOCK_BYTES);
        let _ = writeln!(trace, "{time},a,0,{direction},{start},{bytes},1");
    }
    let run = replay(config.unwrap_or_else(|error| panic!("{error}")), &trace, &[]);
    run.unwrap_or_else(|error| panic!("{error}"))
}

fn disk(name: &str, drive: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
}

fn small_smr(name: &str) -> String {
    disk(name, concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives/small-smr.toml"))
}

/// A part of 1 MiB.
fn slice(name: &str, below: &str, offset: &str) -> String {
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"slice\"\nbelow = \"{below}\"\noffset = \"{offset}\"\n\
         size = \"1 MiB\"\n"
    )
}

fn cache(name: &str, flash: &str, backing: &str, blocks: u64) -> String {
    let kib = blocks * BLOCK_BYTES / 1024;
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"{flash}\", backing = \"{backing}\" }}\n\
         capacity = \"{kib} KiB\"\npolicy = \"lru\"\n"
    )
}

/// With a log of 32 blocks.
fn translation(name: &str, below: &str) -> String {
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"persistent-cache\"\nbelow = \"{below}\"\n\
         bands = \"uniform:64KiB..144KiB\"\npersistent_cache = \"128 KiB\"\n"
    )
}

#[test]
fn caches_side_by_side_add_up() {
    let nodes = [
        disk("cmr", "cmr-500gb-7200"),
        disk("ssd", "850evo"),
        slice("home-a", "cmr", "0"),
        slice("home-b", "cmr", "100 MiB"),
        slice("flash-a", "ssd", "0"),
        slice("flash-b", "ssd", "100 MiB"),
        cache("a", "flash-a", "home-a", 8),
        cache("b", "flash-b", "home-b", 4),
        "[[node]]\nname = \"all\"\nkind = \"span\"\nbelow = [\"a\", \"b\"]\n".to_string(),
    ];
    let b = (1 << 20) / BLOCK_BYTES;
    let run = run(
        &nodes.concat(),
        &[
            ("Write", 0, 2),
            // A hit of `a`.
            ("Write", 0, 1),
            ("Write", b, 1),
            // One of `b`, then two of `a`.
            ("Read", b, 1),
            ("Read", 0, 2),
            // None.
            ("Read", b + 2, 1),
        ],
    );
    assert_eq!(run.roles["cache"], ["a", "b"]);
    assert_eq!((run.hits.read_hits, run.hits.read_hit_ratio), (1 + 2, Some(0.75)));
    assert_eq!((run.hits.write_hits, run.hits.write_hit_ratio), (1, Some(0.25)));
    assert_eq!(run.cache.capacity_blocks, Some(8 + 4));
    assert_eq!(run.cache.dirty_blocks_left, 2 + 1);
}

#[test]
fn what_a_cache_below_another_one_has_is_no_hit_of_the_host() {
    let nodes = [
        disk("cmr", "cmr-500gb-7200"),
        disk("slow", "850evo"),
        cache("inner", "slow", "cmr", 8),
        disk("fast", "850evo"),
        cache("outer", "fast", "inner", 2),
    ];
    let run = run(
        &nodes.concat(),
        &[
            ("Write", 0, 1),
            ("Write", 1, 1),
            // Block 0 leaves for the inner cache, then block 1.
            ("Write", 2, 1),
            ("Write", 0, 1),
            // The only hit of the outer cache.
            ("Read", 2, 1),
            // The inner cache has it, and block 0 leaves: it is there already.
            ("Read", 1, 1),
        ],
    );
    let inner = &run.nodes["inner"];
    assert_eq!((inner["read_hits"], inner["write_hits"]), (1, 1));
    assert_eq!(run.roles["cache"], ["inner", "outer"]);
    assert_eq!((run.hits.read_hits, run.hits.read_hit_ratio), (1, Some(0.5)));
    assert_eq!((run.hits.write_hits, run.hits.write_hit_ratio), (0, Some(0.0)));
    assert_eq!(run.cache.capacity_blocks, Some(8 + 2));
    // Block 2 above, blocks 0 and 1 below.
    assert_eq!(run.cache.dirty_blocks_left, 1 + 2);
}

#[test]
fn a_translation_under_a_flash_works_as_the_one_at_home_does() {
    let nodes = [
        small_smr("under-flash"),
        translation("flash", "under-flash"),
        small_smr("smr"),
        translation("translation", "smr"),
        cache("cache", "flash", "translation", 8),
    ];
    let nodes = nodes.concat();
    let writes: Vec<(&str, u64, u64)> = (0..10).map(|block| ("Write", block, 1)).collect();
    let few = run(&nodes, &writes);
    assert_eq!(few.roles["translation"], ["flash", "translation"]);
    // Ten blocks went to the flash, and two from there home.
    assert_eq!(few.log.persistent_cache_bytes_appended, (10 + 2) * BLOCK_BYTES);
    assert_eq!(few.log.persistent_cache_bytes, Some(2 * 32 * BLOCK_BYTES));
    assert_eq!((few.rewrites.bands_rewritten, few.log.band_seed), (0, None));
    assert!(few.log.no_cleaning.is_none(), "nothing is said of several logs");
    // Both logs together: at the end twelve blocks in 64 slots, and fewer before.
    let fill = few.figures.persistent_cache_fill.values.iter().fold(0.0, |a: f64, b| a.max(*b));
    assert!(fill > 0.05 && fill <= 12.0 / 64.0, "{fill}");

    // Enough that both clean.
    let writes: Vec<(&str, u64, u64)> = (0..400).map(|i| ("Write", i * 37 % 200, 1)).collect();
    let many = run(&nodes, &writes);
    let of = |counter: &str| {
        let [flash, home] = ["flash", "translation"].map(|node| many.nodes[node][counter]);
        assert!(flash > 0 && home > 0, "{counter}: {flash} and {home}");
        flash + home
    };
    assert_eq!(many.rewrites.bands_rewritten, of("bands_rewritten"));
    assert_eq!(many.rewrites.band_bytes_written, of("band_blocks_written") * BLOCK_BYTES);
    assert_eq!(many.log.band_rewrite_time_s, of("band_rewrite_ns") as f64 / 1e9);
    let over = |counter| Some(of("band_blocks_written") as f64 / of(counter) as f64);
    let amplification = many.rewrites.write_amplification;
    assert_eq!(amplification.host, Some(of("band_blocks_written") as f64 / 400.0));
    assert_eq!(amplification.evicted, over("persistent_cache_merged_blocks"));
    assert_eq!(amplification.cache_in, over("persistent_cache_appended_blocks"));
}

#[test]
fn nodes_have_roles_and_a_stack_without_them_has_none() {
    let bare = run(&disk("cmr", "cmr-500gb-7200"), &[("Write", 0, 1)]);
    assert!(bare.roles.is_empty());
    let smr = [small_smr("smr"), translation("bands", "smr")].concat();
    let roles = run(&smr, &[("Write", 0, 1)]).roles;
    assert_eq!(
        roles.into_iter().collect::<Vec<_>>(),
        [("translation".into(), vec!["bands".into()])]
    );
}
