//! Movement of the disk models: by hand, and beside a model that walks from visit to visit.

mod members;
mod naive;

use imbrex_core::rng::Rng;
use imbrex_drives::{Direction, Drive, Mechanism};
use imbrex_sim::analysis::movement::{
    FirstWrite, Footprint, Model, ModelMovement, Movement, MovementSettings, RestExtent, RestUnit,
    WriteUnit,
};
use naive::Request;

fn movement(settings: MovementSettings, requests: &[Request]) -> [ModelMovement; 4] {
    let mut footprint = Footprint::default();
    for &(_, first, blocks) in requests {
        footprint.add(first, first + blocks);
    }
    let mut movement = Movement::new(&Model::ALL, settings, footprint).unwrap();
    for &(is_write, first, blocks) in requests {
        match is_write {
            true => movement.write(first, blocks),
            false => movement.read(first, blocks),
        }
    }
    movement.finish().unwrap().try_into().unwrap()
}

/// Tracks of 2 blocks, bands of 3 tracks.
fn small() -> MovementSettings {
    MovementSettings {
        track_blocks: 2,
        band_tracks: 3,
        buffer_blocks: 1,
        ..MovementSettings::default()
    }
}

/// Blocks, tracks and bands moved over.
fn moved(model: &ModelMovement) -> [u128; 3] {
    [model.head.block, model.head.track, model.head.band]
}

#[test]
fn a_hand_made_trace_by_every_model() {
    // Band 0 has blocks 0 to 5. Block 4 first, then 0 before it, then a read of both.
    let requests = [(true, 4, 1), (true, 0, 1), (false, 4, 1), (false, 0, 1)];
    let [conventional, log, in_place, buffered] = movement(small(), &requests);
    // 4 0 4 0
    assert_eq!(moved(&conventional), [12, 6, 0]);
    assert_eq!(conventional.head.discontinuities, [3, 3, 0]);
    assert_eq!(conventional.head.reversals, [2, 2, 0]);
    // 6 7 6 7: the log begins with band 1.
    assert_eq!(moved(&log), [3, 0, 0]);
    assert_eq!(log.head.discontinuities, [1, 0, 0]);
    // 4, rest 2 3 4, 0, 2 3 4, 4 0: the track of block 0 is not written back.
    assert_eq!(moved(&in_place), [2 + 2 + 4 + 2 + 2 + 4, 1 + 1 + 2 + 1 + 1 + 2, 0]);
    assert_eq!(in_place.head.visits, 10);
    assert_eq!((in_place.updates, in_place.rewrites), (0, 1));
    assert_eq!((in_place.rewritten_blocks, in_place.spilled), (3, 0));
    // 4, 2 6 3 7 4 8, 0, 6 2 7 3 8 4, 4 0
    let blocks = [2, 4, 3, 4, 3, 4, 8, 6, 4, 5, 4, 5, 4, 0, 4];
    assert_eq!(buffered.head.block, blocks.iter().sum());
    assert_eq!((buffered.head.visits, buffered.spilled), (16, 3));
    assert_eq!(buffered.head.band, 12);
}

#[test]
fn what_is_behind_a_write_depends_on_the_readings() {
    // An update of block 1 with 2 and 4 written behind it.
    let requests = [(true, 1, 1), (true, 2, 1), (true, 4, 1), (true, 1, 1)];
    let rewritten = |settings| {
        let in_place = movement(settings, &requests)[2];
        (in_place.updates, in_place.rewrites, in_place.rewritten_blocks)
    };
    assert_eq!(rewritten(small()), (1, 1, 3));
    let rest = |rest| MovementSettings { rest, ..small() };
    assert_eq!(rewritten(rest(RestExtent::Dense)), (1, 1, 2));
    assert_eq!(rewritten(rest(RestExtent::Band)), (1, 1, 4));
    // A first write of block 0 damages block 1 only by the block.
    let requests = [(true, 1, 1), (true, 0, 1)];
    let by = |rest_unit, first_write| {
        let settings = MovementSettings { rest_unit, first_write, ..small() };
        movement(settings, &requests)[2].rewrites
    };
    assert_eq!(by(RestUnit::Track, FirstWrite::Rule), 0);
    assert_eq!(by(RestUnit::Block, FirstWrite::Rule), 1);
    assert_eq!(by(RestUnit::Block, FirstWrite::Free), 0);
    // The last track of a band has nothing behind it, whatever the next band holds.
    let requests = [(true, 6, 1), (true, 4, 1), (true, 4, 1)];
    assert_eq!(movement(small(), &requests)[2].rewrites, 0);
}

#[test]
fn a_request_may_be_one_write() {
    let requests = [(true, 4, 2), (true, 0, 3), (true, 0, 3)];
    let each = movement(small(), &requests)[2];
    // Blocks 0 and 1 twice with 2 to 5 behind them once and again, block 2 with 4 and 5.
    assert_eq!((each.updates, each.rewrites), (3, 6));
    let settings = MovementSettings { write_unit: WriteUnit::Request, ..small() };
    let once = movement(settings, &requests)[2];
    // 4 5, 3 4 5 0 1 2 3 4 5, 3 4 5 0 1 2 3 4 5: blocks 0 and 1 damage the track of 2 and 3.
    assert_eq!((once.updates, once.rewrites, once.rewritten_blocks), (1, 2, 6));
    assert_eq!((once.head.visits, once.head.block), (20, 1 + 2 * (2 + 2 + 5 + 2 + 1 + 2)));
}

#[test]
fn a_request_over_two_tracks_writes_back_the_rest_of_the_second() {
    let settings = |band_tracks| MovementSettings {
        track_blocks: 4,
        band_tracks,
        write_unit: WriteUnit::Request,
        ..small()
    };
    // 0 to 11, then 2 to 5: the first two damage the track of 6 and 7.
    let requests = [(true, 0, 12), (true, 2, 4)];
    let in_place = movement(settings(3), &requests)[2];
    assert_eq!((in_place.rewritten_blocks, in_place.head.block), (6, 39));
    // With a band of one track nothing is damaged.
    assert_eq!(movement(settings(1), &requests)[2].rewrites, 0);
}

#[test]
fn an_all_write_trace_moves_the_log_by_one_block_a_write() {
    let mut rng = Rng::new(3, 0);
    for _ in 0..100 {
        let mut requests: Vec<Request> = Vec::new();
        let mut last = None;
        for _ in 0..1 + rng.below(50) {
            let block = rng.below(40);
            if last != Some(block) {
                requests.push((true, block, 1));
            }
            last = Some(block);
        }
        let [conventional, log, ..] = movement(small(), &requests);
        assert_eq!(log.head.block, requests.len() as u128 - 1);
        assert!(log.head.block <= conventional.head.block);
    }
}

#[test]
fn random_traces_move_as_the_model_that_walks() {
    let mut rng = Rng::new(11, 0);
    let mut seen = [false; 3];
    for _ in 0..3000 {
        let settings = random_settings(&mut rng);
        let requests = random_requests(&mut rng);
        let counted = movement(settings, &requests);
        for (model, counted) in Model::ALL.into_iter().zip(counted) {
            let walked = naive::movement(model, &settings, &requests);
            assert_eq!(counted, walked, "{settings:?}\n{requests:?}");
            seen[0] |= counted.rewrites > 0;
            seen[1] |= counted.spilled > 0;
            seen[2] |= counted.updates > counted.rewrites && counted.rewrites > 0;
        }
    }
    assert_eq!(seen, [true; 3], "every branch was taken");
}

#[test]
fn a_buffer_of_a_band_is_as_good_as_one_without_end() {
    let mut rng = Rng::new(12, 0);
    for _ in 0..300 {
        let mut settings = random_settings(&mut rng);
        settings.buffer_blocks = settings.track_blocks * settings.band_tracks;
        let [_, _, in_place, buffered] = movement(settings, &random_requests(&mut rng));
        let model = Model::InPlace;
        assert_eq!(in_place, ModelMovement { model, ..buffered });
    }
}

fn timed(
    drive: &str,
    settings: MovementSettings,
    requests: &[Request],
) -> Result<Vec<ModelMovement>, String> {
    let mut footprint = Footprint::default();
    for &(_, first, blocks) in requests {
        footprint.add(first, first + blocks);
    }
    let mut movement = Movement::new(&Model::ALL, settings, footprint).unwrap();
    let drive = Drive::open(drive).unwrap();
    movement.time_on(&Mechanism::new(&drive).unwrap());
    for &(_, first, blocks) in requests {
        movement.write(first, blocks);
    }
    movement.finish().map_err(|error| error.to_string())
}

#[test]
fn a_drive_takes_the_time_of_every_run_of_visits() {
    let settings = MovementSettings { rest: RestExtent::Dense, ..small() };
    let requests = [(true, 4, 2), (true, 0, 1)];
    let found = timed("wd-4tb-7200", settings, &requests).unwrap();
    let (read, write) = (Direction::Read, Direction::Write);
    let expected: [&[(u64, u64, Direction)]; 4] = [
        &[(4, 2, write), (0, 1, write)],
        &[(6, 2, write), (8, 1, write)],
        &[(4, 2, write), (4, 2, read), (0, 1, write), (4, 2, write)],
        &[
            (4, 2, write),
            (4, 1, read),
            (6, 1, write),
            (5, 1, read),
            (7, 1, write),
            (0, 1, write),
            (6, 1, read),
            (4, 1, write),
            (7, 1, read),
            (5, 1, write),
        ],
    ];
    let drive = Drive::open("wd-4tb-7200").unwrap();
    for (found, accesses) in found.iter().zip(expected) {
        let mut mechanism = Mechanism::new(&drive).unwrap();
        for &(first, blocks, direction) in accesses {
            mechanism.access(first, blocks, direction);
        }
        let time = found.time.expect("a drive was given");
        assert_eq!(time.service_s, mechanism.service_s(), "{:?}", found.model);
        assert_eq!(time.seek_s, mechanism.seek_s());
        assert!(time.service_s > 0.0);
    }
}

#[test]
fn gaps_of_a_dense_rest_are_not_transferred() {
    let settings = MovementSettings { rest: RestExtent::Dense, band_tracks: 5, ..small() };
    // Behind block 0 lie 3 4, then 8.
    let requests = [(true, 8, 1), (true, 3, 2), (true, 0, 1)];
    let found = timed("wd-4tb-7200", settings, &requests).unwrap();
    let mut mechanism = Mechanism::new(&Drive::open("wd-4tb-7200").unwrap()).unwrap();
    let (read, write) = (Direction::Read, Direction::Write);
    let update = |block| [(8, 1, read), (block, 1, write), (8, 1, write)];
    let last = [(3, 2, read), (8, 1, read), (0, 1, write), (3, 2, write), (8, 1, write)];
    let accesses = [(8, 1, write)].into_iter();
    let accesses = accesses.chain(update(3)).chain(update(4)).chain(last);
    for (first, blocks, direction) in accesses {
        mechanism.access(first, blocks, direction);
    }
    assert_eq!(found[2].time.unwrap().service_s, mechanism.service_s());
}

#[test]
fn visits_beyond_the_drive_are_an_error() {
    let error = timed("wd-4tb-7200", small(), &[(true, 1 << 40, 1)]).unwrap_err();
    assert!(error.starts_with("model 0 visits block 1099511627776 and the drive has"));
    assert!(error.contains("; accepted: a larger drive"), "{error}");
}

#[test]
fn bad_settings_have_an_error_that_says_what_is_accepted() {
    let error = |settings| {
        let footprint = Footprint::default();
        let error = Movement::new(&Model::ALL, settings, footprint).unwrap_err();
        error.to_string()
    };
    let no_track = MovementSettings { track_blocks: 0, ..small() };
    assert!(error(no_track).starts_with("track_blocks 0 and band_tracks 3; accepted:"));
    let endless = MovementSettings { track_blocks: u64::MAX, ..small() };
    assert!(error(endless).contains("; accepted: 1 or more each, and at most"));
    let no_buffer = MovementSettings { buffer_blocks: 0, ..small() };
    assert_eq!(error(no_buffer), "buffer_blocks 0; accepted: 1 or more");
    let mut footprint = Footprint::default();
    footprint.add(0, 1 << 40);
    let error = Movement::new(&Model::ALL, small(), footprint).unwrap_err();
    assert!(error.to_string().starts_with("the requests touch 1099511627776 blocks"));
}

fn random_settings(rng: &mut Rng) -> MovementSettings {
    MovementSettings {
        track_blocks: 1 + rng.below(6),
        band_tracks: 1 + rng.below(8),
        buffer_blocks: 1 + rng.below(12),
        rest: [RestExtent::Written, RestExtent::Dense, RestExtent::Band][rng.below(3) as usize],
        rest_unit: [RestUnit::Track, RestUnit::Block][rng.below(2) as usize],
        first_write: [FirstWrite::Rule, FirstWrite::Free][rng.below(2) as usize],
        write_unit: [WriteUnit::Block, WriteUnit::Request][rng.below(2) as usize],
    }
}

fn random_requests(rng: &mut Rng) -> Vec<Request> {
    let span = 1 + rng.below(200);
    let writes_of_8 = rng.below(9);
    let blocks_max = 1 + rng.below(12);
    let requests = rng.below(60);
    let request = |_| {
        let is_write = rng.below(8) < writes_of_8;
        (is_write, rng.below(span), rng.below(blocks_max + 1))
    };
    (0..requests).map(request).collect()
}
