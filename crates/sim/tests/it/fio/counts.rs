//! What is counted of requests is what fio counts of the same job.

use super::files::run;
use imbrex_sim::fio::Direction;

/// What fio 3.33 counted with libaio on a file: the depths of 1, 2 to 3, 4 to 7, 8 and more, and how
/// often no, 1 to 4, 5 to 8 and more answers were taken at once. `tests/e2e/drive_fio_figures.py`
/// asks fio itself.
#[test]
fn the_depth_of_the_queue_is_counted_as_fio_counts_it() {
    let cases: [(&str, [u64; 4], [u64; 3]); 9] = [
        ("rw=randread", [1, 2, 4, 249], [0, 249, 1]),
        ("rw=read\nnumber_ios=5", [1, 2, 2, 0], [0, 0, 1]),
        ("rw=read\nnumber_ios=8", [1, 2, 4, 1], [0, 1, 1]),
        // Each pass over the region ends when all is answered.
        ("rw=read\nloops=3", [3, 6, 12, 747], [0, 747, 3]),
        ("rw=randread\nnorandommap\nio_size=2560k", [3, 6, 12, 619], [0, 619, 3]),
        ("rw=read\nnumber_ios=100\nloops=3", [2, 4, 8, 286], [0, 286, 2]),
        ("rw=write\nfsync=4", [1, 2, 5, 311], [0, 249, 1]),
        ("rw=read\nthinktime=1000\nthinktime_blocks=5\nio_size=64k", [3, 4, 4, 5], [0, 14, 0]),
        (
            "rw=read\nthinktime=1000\nthinktime_blocks=5\nthinktime_blocks_type=issue",
            [52, 102, 102, 0],
            [0, 256, 0],
        ),
    ];
    for (options, depths, batches) in cases {
        let (_, outcome) =
            run(&format!("[a]\nioengine=libaio\niodepth=8\nbs=4k\nsize=1m\n{options}"));
        let job = &outcome.jobs[0];
        assert_eq!(job.depths[..4], depths, "depths of {options}");
        assert_eq!(job.batches[..3], batches, "batches of {options}");
        assert_eq!(job.depths[4..].iter().chain(&job.batches[3..]).sum::<u64>(), 0);
    }
}

/// fio flushes after any request but a flush while the number of writes is a multiple of `fsync`.
#[test]
fn a_mixed_job_flushes_after_reads_too() {
    let (_, outcome) = run("[a]\nbs=4k\nsize=4m\nrw=randrw\nfsync=4\nwrite_lat_log=log");
    let job = &outcome.jobs[0];
    let (mut writes, mut flushes) = (0u64, 0);
    for sample in &job.samples[..job.samples.len() - 1] {
        writes += u64::from(sample.direction == Direction::Write);
        flushes += u64::from(writes > 0 && writes.is_multiple_of(4));
    }
    assert!(flushes > writes / 4 + 50, "{flushes} flushes, {writes} writes");
    assert_eq!(job.flushes.spread.count, flushes);
}

/// A job that is ahead of its rate waits for what is in flight, as fio does. So no request of it
/// finds another in flight when the drive is faster than the rate.
#[test]
fn a_pause_comes_after_the_last_request_too_and_a_rate_waits_for_answers() {
    let (_, outcome) =
        run("[a]\nrw=read\nbs=4k\nsize=1m\nnumber_ios=10\nthinktime=300ms\nthinktime_blocks=5");
    let ms = outcome.jobs[0].runtime.0 / 1_000_000;
    assert!((600..700).contains(&ms), "two pauses of 300 ms: {ms} ms");
    let (_, outcome) = run(
        "[a]\nrw=randread\nioengine=libaio\niodepth=8\nbs=4k\nsize=100g\nnumber_ios=100\nrate_iops=20",
    );
    assert_eq!(outcome.jobs[0].depths, [100, 0, 0, 0, 0, 0, 0]);
}
