//! A clean shutdown keeps all data, and the layers go on as if there had been none.

use crate::client::{FUA, TRIM, WRITE_ZEROES};
use crate::served::{Place, Served, disconnect};
use imbrex_core::rng::Rng;
use serde_json::Value;

const DEVICE_BYTES: u64 = 32 << 20;
const BLOCK_BYTES: u64 = 4096;
const REQUESTS: usize = 1_800;
const STACKS: [&str; 8] =
    ["cmr-only", "smr-only", "lru", "lru-band", "pore-cf", "pore-pf", "pore", "ride"];
/// Counters that the same requests must move by the same amounts, with a restart or without.
const COUNTERS: [&str; 5] =
    ["read_blocks", "write_blocks", "read_hits", "write_hits", "forced_evictions"];
/// Counters of work in the background, of which a block more or less is merged as the medium is
/// quicker or slower than the client.
const NEARLY_EQUAL_COUNTERS: [&str; 4] = [
    "persistent_cache_bytes_appended",
    "bands_rewritten",
    "band_bytes_written",
    "persistent_cache_bytes_merged",
];

#[derive(Clone, Copy)]
enum Action {
    Read,
    Write { fill: u64, flags: u16 },
    Zero { command: u16 },
}

#[derive(Clone, Copy)]
struct Request {
    action: Action,
    offset: u64,
    bytes: u64,
}

/// Requests of which half fall into a twelfth of the device, so that caches hit and bands fill.
fn requests(seed: u64) -> Vec<Request> {
    let mut rng = Rng::new(seed, 1);
    let blocks = DEVICE_BYTES / BLOCK_BYTES;
    let mut requests = Vec::new();
    for fill in 1..=REQUESTS as u64 {
        let within = if rng.below(2) == 0 { blocks } else { blocks / 12 };
        let length = 1 + rng.below(16);
        let action = match rng.below(100) {
            0..20 => Action::Read,
            20..24 => Action::Zero { command: WRITE_ZEROES },
            24..28 => Action::Zero { command: TRIM },
            28..30 => Action::Write { fill, flags: FUA },
            _ => Action::Write { fill, flags: 0 },
        };
        requests.push(Request {
            action,
            offset: rng.below(within - length) * BLOCK_BYTES,
            bytes: length * BLOCK_BYTES,
        });
    }
    requests
}

/// What a write puts into a block: no two blocks are ever written alike.
fn content(fill: u64, offset: u64, bytes: u64) -> Vec<u8> {
    let words = (0..bytes / 8).map(|word| (fill << 40) ^ (offset / 8 + word));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Carries the requests out one after another, here and on the device, comparing every read.
fn carry_out(server: &Served, requests: &[Request], expected: &mut [u8]) {
    let mut client = server.client();
    for request in requests {
        let (offset, bytes) = (request.offset, request.bytes);
        let here = &mut expected[offset as usize..(offset + bytes) as usize];
        match request.action {
            Action::Read => {
                let read = client.read(offset, bytes as u32).expect("a read");
                assert!(read == here, "other data at {offset}");
            }
            Action::Write { fill, flags } => {
                here.copy_from_slice(&content(fill, offset, bytes));
                assert_eq!(client.write(flags, offset, here), 0);
            }
            Action::Zero { command } => {
                here.fill(0);
                assert_eq!(client.call(command, 0, offset, bytes as u32), 0);
            }
        }
    }
    disconnect(client);
}

fn verify(server: &Served, expected: &[u8]) {
    let mut client = server.client();
    const PART: usize = 4 << 20;
    for (index, part) in expected.chunks(PART).enumerate() {
        let offset = (index * PART) as u64;
        let read = client.read(offset, part.len() as u32).expect("a read");
        let differs = read.iter().zip(part).position(|(a, b)| a != b);
        let at = differs.map(|at| offset + at as u64);
        assert_eq!(at, None, "the first byte that is another one");
    }
    disconnect(client);
}

fn counter(run: &Value, name: &str) -> u64 {
    run[name].as_u64().unwrap_or_else(|| panic!("no {name} in {run}"))
}

fn start(stack: &str) -> Place {
    let place = Place::new();
    // Bands, log and cache are so small that blocks leave the cache and bands are rewritten.
    let translation = ["translation.bands=uniform:1MiB..3MiB", "translation.persistent_cache=1MiB"];
    let settings = match stack {
        "cmr-only" => vec![],
        "smr-only" => translation.to_vec(),
        "lru" | "lru-band" => [&translation[..], &["cache.capacity=1MiB"]].concat(),
        _ => [&translation[..], &["cache.capacity=1MiB", "cache.zone=2MiB"]].concat(),
    };
    place.create(stack, &format!("{}MiB", DEVICE_BYTES >> 20), &settings);
    place
}

fn a_restart_changes_nothing(stack: &str) {
    let requests = requests(7);
    let mut expected = vec![0; DEVICE_BYTES as usize];
    let straight = start(stack);
    let server = straight.serve(stack);
    carry_out(&server, &requests, &mut expected);
    let whole = server.stop();

    let mut again = vec![0; DEVICE_BYTES as usize];
    let broken = start(stack);
    let parts: Vec<Value> = requests
        .chunks(REQUESTS / 3 + 1)
        .map(|part| {
            let server = broken.serve(stack);
            carry_out(&server, part, &mut again);
            server.stop()
        })
        .collect();
    assert_eq!(parts.len(), 3);
    let sum = |name| parts.iter().map(|run| counter(run, name)).sum::<u64>();
    for name in COUNTERS {
        assert_eq!(sum(name), counter(&whole, name), "{stack}: {name}");
    }
    for name in NEARLY_EQUAL_COUNTERS {
        let (sum, whole) = (sum(name), counter(&whole, name));
        let near = sum.abs_diff(whole) * 50 <= whole;
        assert!(near, "{stack}: {name} is {sum}, without a restart {whole}");
    }
    let last = parts.last().expect("three parts");
    for name in ["dirty_blocks_left", "capacity_blocks", "band_seed"] {
        assert_eq!(last[name], whole[name], "{stack}: {name}");
    }
    // The shutdowns had something to keep.
    if stack != "cmr-only" {
        assert!(counter(&whole, "bands_rewritten") > 0, "{whole}");
    }
    if whole["capacity_blocks"].is_u64() {
        assert!(counter(&whole, "dirty_blocks_left") > 0, "{whole}");
    }
    for place in [&straight, &broken] {
        let server = place.serve(stack);
        verify(&server, &expected);
        server.stop();
    }
}

#[test]
fn no_stack_loses_data_or_forgets_where_it_was_at_a_clean_shutdown() {
    for stack in STACKS {
        a_restart_changes_nothing(stack);
    }
}

#[test]
fn what_was_read_or_written_before_a_shutdown_is_in_the_cache_after_it() {
    let place = start("lru");
    let server = place.serve("lru");
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &content(1, 0, 64 << 10)), 0);
    client.read(1 << 20, 64 << 10).expect("a read");
    disconnect(client);
    let run = server.stop();
    assert_eq!(counter(&run, "read_hits"), 0);
    assert_eq!(counter(&run, "dirty_blocks_left"), 16);

    let server = place.serve("lru");
    let mut client = server.client();
    assert_eq!(client.read(0, 64 << 10), Ok(content(1, 0, 64 << 10)));
    client.read(1 << 20, 64 << 10).expect("a read");
    disconnect(client);
    let run = server.stop();
    assert_eq!(counter(&run, "read_hits"), 32);
    assert_eq!(counter(&run, "dirty_blocks_left"), 16);
}
