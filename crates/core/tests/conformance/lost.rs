//! A disk that is lost before a layer comes up: what is served is right or an error, and when the disk
//! is there again nothing that was flushed is lost.

use super::kinds::buffers::{buffer, buffering, kept};
use super::kinds::made::{
    durable_s_block_dense_with_ring, durable_segments_kappa_3, durable_translation,
};
use super::kinds::{DURABILITY, Kind, stacked};
use super::suite::{Amount, Case, EVERYDAY, SOAK, lose};
use imbrex_core::memory_buffer::{BufferPolicy, MemoryBufferSettings, Persistence};
use imbrex_core::planted::PlantedBug;
use imbrex_core::units::BlockCount;

/// What the runs have come to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Starts {
    /// Starts without a disk that were refused.
    pub refused: u64,
    /// Starts without a disk after which requests were served.
    pub served: u64,
}

/// Loses every disk in its turn: before a durable layer comes up again after an orderly end or a power
/// cut, and before it is formatted.
///
/// # Errors
/// The first rule that was broken.
pub fn with_lost_disks(
    kind: &Kind,
    amount: Amount,
    bug: Option<PlantedBug>,
) -> Result<Starts, String> {
    let mut starts = Starts::default();
    for turn in 0..4 * amount.losing {
        for port in 0..kind.disks.len() {
            let case = Case {
                seed: turn,
                depth: [1, 4][(turn / 2 % 2) as usize],
                asks: 60,
                fault: None,
                closes: turn % 2 == 0,
                bug,
            };
            let was_served = lose(kind, case, port)?;
            starts.served += u64::from(was_served);
            starts.refused += u64::from(!was_served);
        }
    }
    Ok(starts)
}

/// Buffers with a log over layers that keep a journal.
fn stacks() -> [(&'static str, Kind); 3] {
    let settings = MemoryBufferSettings {
        block: BlockCount(2),
        ..kept(Persistence::Log(DURABILITY), buffering(BufferPolicy::LruBlock))
    };
    let over = |lower| stacked(buffer(settings), lower);
    [
        ("over S-blocks", over(durable_s_block_dense_with_ring())),
        ("over segments", over(durable_segments_kappa_3())),
        ("over a translation", over(durable_translation())),
    ]
}

#[test]
fn a_buffer_does_not_come_up_over_a_layer_that_did_not() {
    for (name, kind) in stacks() {
        let starts = with_lost_disks(&kind, EVERYDAY, None);
        let starts = starts.unwrap_or_else(|mistake| panic!("{name}: {mistake}"));
        println!("{name}: {starts:?}");
        assert_eq!(starts.served, 0, "{name}: a start without a disk was served");
    }
}

#[test]
fn a_layer_that_comes_up_over_a_lost_node_is_found() {
    let bug = Some(PlantedBug::UpOverLostNode);
    // A segment layout has no map in memory: it asks the disk, and hears that it is lost.
    let [(name, kind), ..] = stacks();
    let found = with_lost_disks(&kind, SOAK, bug);
    println!("{name}: {}", found.expect_err("data that is not there"));
}
