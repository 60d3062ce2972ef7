//! The shipped recipes meet the counts they quote.

use imbrex_sim::trace::TraceOperation;
use imbrex_sim::trace::synthetic::{Model, Recipe};

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
        let Model::Volume(volume) = &recipe.model else {
            panic!("{name} is not a volume")
        };
        let published = &volume.published;
        let fifo_blocks = (published.accessed_gib * GIB / 256.0 / 4096.0) as u64;
        let measured = measure(&recipe, fifo_blocks);
        let gib = |bands: usize| bands as f64 * BAND as f64 / GIB;
        let (written, accessed) = (gib(measured.written_bands), gib(measured.accessed_bands));
        eprintln!(
            "{name}: direct write amplification {:.1}",
            measured.direct_write_amplification
        );
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
        assert!(
            (41.3..=171.5).contains(&measured.direct_write_amplification),
            "{name}"
        );
        assert!(
            recipe.label().starts_with("synthetic "),
            "{}",
            recipe.label()
        );
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
    let hot_bytes = recipe
        .records()
        .map(|record| record.offset_bytes + 4096)
        .min()
        .unwrap()
        * (4096 / 40);
    let hits = recipe
        .records()
        .filter(|record| record.offset_bytes < hot_bytes)
        .count();
    let percent = hits as f64 / recipe.records().count() as f64 * 100.0;
    assert!(
        (94.9..95.1).contains(&percent),
        "{percent} % of the requests go to the hot set"
    );
}

fn message(name: &str, text: &str) -> String {
    Recipe::parse(name, text).unwrap_err().to_string()
}

#[test]
fn bad_recipes_are_refused_with_the_reason() {
    let unknown = Recipe::load("wdev").unwrap_err().to_string();
    assert_eq!(
        unknown,
        "no synthetic recipe is called \"wdev\"; accepted: hm-like, mds-like, one-block, prn-like, sequential-write, \
         src-like, stg-like, ts-like, uniform-random-write, usr-like, wdev-like, web-like, or the path of a .toml file"
    );
    let head = "name = \"x\"\ndescription = \"y\"\nseed = 1\n";
    assert_eq!(
        message("x.toml", head),
        "x.toml: 0 model tables; accepted: exactly one of [volume], [uniform-random], [sequential], [one-block]"
    );
    let load = |percent: &str| {
        format!(
            "{head}[uniform-random]\nrequests = 1\nfootprint_bytes = 4096\nrequest_bytes = 4096\ninterval_us = 1\n\
             write_percent = {percent}\n"
        )
    };
    assert_eq!(
        message("x.toml", &load("101")),
        "x.toml: write_percent is 101; accepted: 0 to 100"
    );
    assert!(message("x.toml", &(load("50") + "sise = 3\n")).contains("unknown field `sise`"));
    assert!(Recipe::parse("x.toml", &load("50")).is_ok());
}
