//! The shipped recipes meet the counts they quote.

use imbrex_traces::synthetic::{Model, Recipe};
use imbrex_traces::{
    BlockRule, TraceOperation, TraceReader, TraceRecord, WriteFormat, WriteOptions, characterise,
    write_to,
};
use sha2::{Digest, Sha256};

use proptest::prelude::*;

const BAND: u64 = 18 << 20;

/// What the tests measure of a recipe, in the paper's units.
#[derive(Default)]
struct Measured {
    requests: u64,
    writes: u64,
    written_bands: usize,
    accessed_bands: usize,
    /// PORE, Figure 6: bands covered by each fill of a FIFO of 1/256 of the footprint, over the bytes written.
    direct_write_amplification: f64,
}

fn measure(recipe: &Recipe, fifo_blocks: u64) -> Measured {
    let records = recipe.records();
    let device_bytes = records.device_bytes();
    let bands = device_bytes.div_ceil(BAND) as usize;
    let mut measured = Measured::default();
    let (mut written, mut accessed) = (vec![false; bands], vec![false; bands]);
    let mut covered_by_fill = vec![0; bands];
    let (mut in_fifo, mut covered, mut fills, mut last_ns) = (0, 0u64, 0u64, 0);
    for record in records {
        assert!(record.offset_bytes % 4096 == 0 && record.length_bytes == 4096);
        assert!(
            record.offset_bytes + record.length_bytes <= device_bytes,
            "{record:?} is beyond {device_bytes}"
        );
        assert!(record.time_ns >= last_ns, "time goes back at {record:?}");
        last_ns = record.time_ns;
        let band = (record.offset_bytes / BAND) as usize;
        measured.requests += 1;
        accessed[band] = true;
        if record.operation == TraceOperation::Write {
            measured.writes += 1;
            written[band] = true;
            if covered_by_fill[band] != fills + 1 {
                covered_by_fill[band] = fills + 1;
                covered += 1;
            }
            in_fifo += 1;
            if in_fifo == fifo_blocks {
                fills += 1;
                in_fifo = 0;
            }
        }
    }
    measured.written_bands = written.iter().filter(|&&touched| touched).count();
    measured.accessed_bands = accessed.iter().filter(|&&touched| touched).count();
    measured.direct_write_amplification =
        (covered * BAND) as f64 / (fills * fifo_blocks * 4096).max(1) as f64;
    measured
}

/// Table I of PORE: requests and write % exactly, written and accessed GiB within 2 %; Figure 6: within its range.
#[test]
fn volumes_have_the_published_counts() {
    const GIB: f64 = (1u64 << 30) as f64;
    let mut volumes = 0;
    for name in Recipe::names().filter(|name| name.ends_with("-like")) {
        let recipe = Recipe::load(name).unwrap();
        let Model::Volume(volume) = &recipe.model else { panic!("{name} is not a volume") };
        let published = &volume.published;
        let fifo_blocks = (published.accessed_gib * GIB / 256.0 / 4096.0) as u64;
        let measured = measure(&recipe, fifo_blocks);
        let gib = |bands: usize| bands as f64 * BAND as f64 / GIB;
        let (written, accessed) = (gib(measured.written_bands), gib(measured.accessed_bands));
        eprintln!("{name}: direct write amplification {:.1}", measured.direct_write_amplification);
        assert_eq!(measured.requests, published.requests, "{name}");
        let expected_writes =
            (published.requests as f64 * published.write_percent / 100.0).round() as u64;
        assert_eq!(measured.writes, expected_writes, "{name}");
        assert!(
            (written / published.written_gib - 1.0).abs() < 0.02,
            "{name}: {written} GiB written"
        );
        assert!(
            (accessed / published.accessed_gib - 1.0).abs() < 0.02,
            "{name}: {accessed} GiB accessed"
        );
        assert!((41.3..=171.5).contains(&measured.direct_write_amplification), "{name}");
        assert!(recipe.label().starts_with("synthetic "), "{}", recipe.label());
        volumes += 1;
    }
    assert_eq!(volumes, 9);
}

/// A scaled recipe keeps the shares and divides counts and footprint.
#[test]
fn scaling_divides_requests_and_footprint() {
    let recipe = Recipe::load("wdev-like").unwrap().scaled(16.0).unwrap();
    let measured = measure(&recipe, 300);
    assert_eq!(measured.requests, 165_927); // 2,654,824 / 16, to nearest.
    assert_eq!(measured.writes, 120_629); // 72.7 % of them, to nearest.
    assert_eq!(measured.written_bands, 17); // 4.71 GiB / 16 / 18 MiB = 16.7.
    assert_eq!(measured.accessed_bands, 17);
    assert!(recipe.label().contains("1/16"), "{}", recipe.label());
}

#[test]
fn a_recipe_gives_the_same_requests_twice() {
    let recipe = Recipe::load("mds-like").unwrap().scaled(64.0).unwrap();
    assert!(recipe.records().eq(recipe.records()));
    let mut other = recipe.clone();
    other.seed += 1;
    assert!(!recipe.records().eq(other.records()));
}

#[test]
fn one_block_hits_its_hot_set_by_the_stated_share() {
    let recipe = Recipe::load("one-block").unwrap().scaled(40.0).unwrap();
    let hot_bytes =
        recipe.records().map(|record| record.offset_bytes + 4096).min().unwrap() * (4096 / 40);
    let hits = recipe.records().filter(|record| record.offset_bytes < hot_bytes).count();
    let percent = hits as f64 / recipe.records().count() as f64 * 100.0;
    assert!((94.9..95.1).contains(&percent), "{percent} % of the requests go to the hot set");
}

#[test]
fn read_hot_reads_its_hot_set_and_writes_behind_it() {
    let recipe = Recipe::load("read-hot").unwrap().scaled(10.0).unwrap();
    let hot_bytes = 4000 * 4096;
    let is_write = |record: &TraceRecord| record.operation == TraceOperation::Write;
    assert!(recipe.records().all(|it| is_write(&it) == (it.offset_bytes >= hot_bytes)));
    let writes = recipe.records().filter(is_write).count();
    assert!((29_000..31_000).contains(&writes), "{writes} of 60,000");
}

/// SHA-256 of the load as MSR CSV, with another start and host than our own writer gives, as other programs write it.
fn sha256_of_msr(recipe: &Recipe) -> String {
    let reader = TraceReader::from_recipe(recipe);
    let options = WriteOptions::from(WriteFormat::Msr);
    let (csv, summary) = write_to(reader, Vec::new(), "x.csv", &options).unwrap();
    assert_eq!(summary.records, 1_000_000);
    let mut hash = Sha256::new();
    let mut first_ticks = None;
    for line in std::str::from_utf8(&csv).unwrap().lines() {
        let (ticks, rest) = line.split_once(',').unwrap();
        let ticks: u64 = ticks.parse().unwrap();
        let rest = rest.strip_prefix("synthetic-financial1-dense,").unwrap();
        let since = ticks - *first_ticks.get_or_insert(ticks);
        let ticks = 128_166_000_000_000_000 + since;
        hash.update(format!("{ticks},synth,{rest}\n"));
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes of the same load by an independent generator.
#[test]
fn financial1_dense_is_the_same_load_everywhere() {
    for (seed, sha256) in [
        (1, "5b480199de6a707aa56eb7f971acd451557d21bedffd285b96fd64513ec4d777"),
        (2, "8e2ad86dad0d2dbbb30b0f118a9e6180db1b0a1e6d98e1ef16bfadd93112a227"),
        (3, "1154e83cebca70628fbccc60b229719f97cc1ed9c3561032851dc8665f1f4ded"),
    ] {
        let mut recipe = Recipe::load("financial1-dense").unwrap();
        recipe.seed = seed;
        assert!(recipe.label().starts_with("synthetic financial1-dense"));
        assert_eq!(sha256_of_msr(&recipe), sha256, "seed {seed}");
    }
}

#[test]
fn bad_history_recipes_are_refused_with_the_reason() {
    let text = Recipe::load("financial1-dense").unwrap().text().to_owned();
    for (good, bad, reason) in [
        ("write_share = 0.7873", "write_share = 78.73", "write_share is 78.73; accepted: 0 to 1"),
        ("span_mib = 1024", "span_mib = 0", "span_mib is 0; accepted: 1 to 2^40"),
        (
            "[6, 0.30]",
            "[0, 0.30]",
            "write_sectors has [0, 0.3]; accepted: 1 to 2048 sectors and a share of 0 to 1",
        ),
        (
            "[16, 0.22]",
            "[16, 0.75]",
            "the shares of read_sectors sum to 1.530; accepted: at most 1",
        ),
        (
            "requests = 1_000_000",
            "requests = 2_000_000_000",
            "requests is 2000000000; accepted: 0 to 10^9",
        ),
    ] {
        let bad = text.replace(good, bad);
        assert_eq!(message("x.toml", &bad), format!("x.toml: {reason}"));
    }
}

fn message(name: &str, text: &str) -> String {
    Recipe::parse(name, text).unwrap_err().to_string()
}

#[test]
fn bad_recipes_are_refused_with_the_reason() {
    let unknown = Recipe::load("wdev").unwrap_err().to_string();
    assert!(
        unknown.starts_with(
            "no synthetic recipe is called \"wdev\"; accepted: financial1-dense, hm-like, "
        ) && unknown.ends_with(", wdev-like, web-like, or the path of a .toml file"),
        "{unknown}"
    );
    let near = Recipe::load("wdev-lik").unwrap_err().to_string();
    assert!(
        near.starts_with(
            "no synthetic recipe is called \"wdev-lik\"; did you mean \"wdev-like\"?; "
        ),
        "{near}"
    );
    let head = "name = \"x\"\ndescription = \"y\"\nseed = 1\n";
    assert_eq!(
        message("x.toml", head),
        "x.toml: 0 model tables; accepted: exactly one of [volume], [updates], [shares], [history], [zone-mix], [uniform-random], [sequential], [one-block], [read-hot]"
    );
    let load = |percent: &str| {
        format!(
            "{head}[uniform-random]\nrequests = 1\nfootprint_bytes = 4096\nrequest_bytes = 4096\ninterval_us = 1\n\
             write_percent = {percent}\n"
        )
    };
    assert_eq!(message("x.toml", &load("101")), "x.toml: write_percent is 101; accepted: 0 to 100");
    assert!(message("x.toml", &(load("50") + "sise = 3\n")).contains("unknown field `sise`"));
    assert!(Recipe::parse("x.toml", &load("50")).is_ok());
}

/// Table 3 of HWSR: counts exactly, distinct data and mean sizes within 1 %.
#[test]
fn update_loads_have_the_published_counts() {
    let mut loads = 0;
    for name in Recipe::names().filter(|name| name.starts_with("hwsr-")) {
        let recipe = Recipe::load(name).unwrap();
        let Model::Updates(updates) = &recipe.model else {
            panic!("{name} has no table [updates]")
        };
        let published = &updates.published;
        let info = characterise(TraceReader::from_recipe(&recipe), BlockRule::Touched).unwrap();
        eprintln!(
            "{name}: {} updates, {:.3} GB, {:.0} B read, {:.0} B written, {:.1} % random",
            info.updates,
            info.unique_bytes as f64 / 1e9,
            info.read.mean_bytes,
            info.write.mean_bytes,
            info.random_percent
        );
        assert_eq!(info.requests, published.requests, "{name}");
        let writes = (published.requests as f64 * published.write_percent / 100.0).round() as u64;
        assert_eq!((info.write.requests, info.updates), (writes, published.updates), "{name}");
        for (measured, stated) in [
            (info.unique_bytes as f64 / 1e9, published.unique_gb),
            (info.read.mean_bytes, published.mean_read_bytes),
            (info.write.mean_bytes, published.mean_write_bytes),
        ] {
            assert!((measured / stated - 1.0).abs() < 0.01, "{name}: {measured} for {stated}");
        }
        assert!(info.footprint_bytes <= recipe.records().device_bytes(), "{name}");
        loads += 1;
    }
    assert_eq!(loads, 12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A recipe is either refused or generates what it says; it never panics.
    #[test]
    fn any_accepted_recipe_generates_its_requests(
        requests in 1..3000u64,
        write_percent in 0.0..100.0f64,
        unique_gb in 1e-6..0.01f64,
        mean_bytes in 512.0..60_000.0f64,
        updates in 0..3000u64,
        file_blocks in 1..64u64,
        percents in proptest::array::uniform6(0.0..100.0f64),
        lengths in proptest::array::uniform4(1.0..200.0f64),
    ) {
        let updates = format!(
            "name = 'x'\ndescription = 'y'\nseed = 1\n[updates.published]\nsource = 's'\n\
             requests = {requests}\nwrite_percent = {write_percent}\nunique_gb = {unique_gb}\n\
             mean_read_bytes = {mean_bytes}\nmean_write_bytes = {mean_bytes}\nupdates = {updates}\n\
             [updates.locality]\ninterval_us = 10\nfile_kib = {}\ndevice_to_files = 1.0\n\
             open_files = 3\nskew = 2.5\nsequential_percent = {}\nreads_of_written_percent = {}\n",
            file_blocks * 4, percents[0], percents[1]
        );
        let volume = include_str!("../../../../workloads/synthetic/wdev-like.toml")
            .replace("2654824", &requests.to_string())
            .replace("72.7", &write_percent.to_string())
            .replace("written_gib = 4.71", &format!("written_gib = {}", unique_gb * 10.0))
            .replace("accessed_gib = 4.73", &format!("accessed_gib = {}", unique_gb * 12.0))
            .replace("written_coverage_percent = 10", &format!("written_coverage_percent = {}", percents[2]))
            .replace("dense_bands_percent = 5", &format!("dense_bands_percent = {}", percents[3]))
            .replace("hot_blocks_percent = 4", &format!("hot_blocks_percent = {}", percents[4]))
            .replace("scan_coverage_percent = 5", &format!("scan_coverage_percent = {}", percents[5]))
            .replace("extent_blocks = 8.0", &format!("extent_blocks = {}", lengths[0]))
            .replace("burst_runs = 6.0", &format!("burst_runs = {}", lengths[1]))
            .replace("hot_item_blocks = 2 ", &format!("hot_item_blocks = {} ", lengths[2] as u64))
            .replace("touched_run_bands = 8.0", &format!("touched_run_bands = {}", lengths[3]));
        for text in [updates, volume] {
            let Ok(recipe) = Recipe::parse("x.toml", &text) else { continue };
            let device_bytes = recipe.records().device_bytes();
            let mut count = 0;
            for record in recipe.records() {
                prop_assert!(record.length_bytes > 0);
                prop_assert!(record.offset_bytes + record.length_bytes <= device_bytes);
                count += 1;
            }
            prop_assert_eq!(count, requests);
        }
    }
}

#[test]
fn shares_of_written_and_updated_blocks_are_met_to_the_block() {
    let recipes = Recipe::names().map(|name| Recipe::load(name).expect("a shipped recipe"));
    let mut met = 0;
    for recipe in recipes {
        let Model::Shares(shares) = &recipe.model else {
            continue;
        };
        let found = characterise(TraceReader::from_recipe(&recipe), BlockRule::Touched)
            .expect("a generated load");
        let blocks = shares.locality.blocks;
        assert_eq!(found.unique_blocks, blocks, "{}", recipe.name);
        // Half a block either way.
        let near = 50.0 / blocks as f64 + 1e-9;
        for (measured, published) in [
            (found.written_blocks_percent, shares.published.written_percent),
            (found.updated_blocks_percent, shares.published.updated_percent),
        ] {
            assert!(
                (measured - published).abs() <= near,
                "{}: {measured} is not {published}",
                recipe.name
            );
        }
        assert!(found.footprint_bytes <= recipe.records().device_bytes());
        met += 1;
    }
    assert_eq!(met, 7);
}

#[test]
fn impossible_shares_are_refused() {
    let text = include_str!("../../../../workloads/synthetic/raid4smr-web3.toml");
    for (key, value, accepted) in [
        ("updated_percent = 0.25", "updated_percent = 80", "0 to 71.04"),
        ("blocks = 131072", "blocks = 0", "1 to 4294967296"),
        ("recency = 1.0", "recency = -1", "0.01 to 100"),
        ("reads_of_others = 1.5", "reads_of_others = 1e6", "at most 200000000"),
    ] {
        assert!(text.contains(key), "{key}");
        let error = Recipe::parse("web3.toml", &text.replace(key, value)).expect_err(value);
        assert!(error.to_string().contains(accepted), "{error}");
    }
}
