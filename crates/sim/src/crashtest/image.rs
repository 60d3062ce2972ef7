//! Crash images: what the members may hold when the power goes at a log index.

use super::log::{Log, LoggedWrite, Window};
use super::medium::{Block, Medium, SECTOR_BYTES, SECTORS, block_of};
use imbrex_core::rng::Rng;

/// Most pending writes of which all subsets are tried in an ordinary run.
pub const EXHAUSTIVE_PENDING_MAX: usize = 8;
/// The same in a long run.
pub const EXHAUSTIVE_PENDING_SOAK: usize = 12;

/// Which of the pending writes reach the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// None.
    None,
    /// All.
    All,
    /// The first ones, in the order in which they completed.
    Prefix,
    /// Some.
    Subset,
    /// Some, in another order wherever the host could not see the order.
    Reordered,
    /// Some, and at least one only up to or from a sector of 512 bytes.
    Torn,
    /// The same, with noise in the sector where it was torn.
    TornGarbage,
    /// One of all the subsets of a window with few pending writes.
    Exhaustive,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 8] = [
        Mode::None,
        Mode::All,
        Mode::Prefix,
        Mode::Subset,
        Mode::Reordered,
        Mode::Torn,
        Mode::TornGarbage,
        Mode::Exhaustive,
    ];

    /// The word used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::None => "none",
            Mode::All => "all",
            Mode::Prefix => "prefix",
            Mode::Subset => "subset",
            Mode::Reordered => "reordered",
            Mode::Torn => "torn-512",
            Mode::TornGarbage => "torn-garbage",
            Mode::Exhaustive => "exhaustive",
        }
    }
}

/// What becomes of a pending write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Fate {
    /// Nothing of it reaches the medium.
    Lost,
    /// All of it does.
    Whole,
    /// A part of it does.
    Torn(Tear),
}

/// Where a write was torn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Tear {
    /// The sector, counted from the start of the write.
    pub sector: usize,
    /// The sectors before it reached the medium; otherwise it and those after it.
    pub front: bool,
    /// The sector itself holds noise made from this seed, from its start or from its middle.
    pub noise: Option<u64>,
}

/// A power cut.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Cut {
    /// The log index.
    pub index: u64,
    /// Every write submitted, in the order in which the medium takes them.
    pub order: Vec<usize>,
    /// The pending writes and what becomes of each.
    pub fates: Vec<(usize, Fate)>,
}

impl Cut {
    /// Draws a power cut of a mode; `choice` decides what the mode leaves open. Of the exhaustive
    /// mode it is the number of the subset.
    pub fn draw(log: &Log, media: &[Medium], index: u64, mode: Mode, choice: u64) -> Cut {
        let window = log.window(index);
        let pending: Vec<usize> = window.pending.iter().map(|at| window.writes[*at]).collect();
        let mut rng = Rng::new(choice, 31);
        let whole_if = |is_whole: bool| if is_whole { Fate::Whole } else { Fate::Lost };
        let fates: Vec<Fate> = match mode {
            Mode::None => vec![Fate::Lost; pending.len()],
            Mode::All => vec![Fate::Whole; pending.len()],
            Mode::Prefix => {
                let kept = rng.below(pending.len() as u64 + 1) as usize;
                (0..pending.len()).map(|at| whole_if(at < kept)).collect()
            }
            Mode::Subset | Mode::Reordered => {
                let share = 1 + rng.below(7);
                pending.iter().map(|_| whole_if(rng.below(8) < share)).collect()
            }
            Mode::Torn | Mode::TornGarbage => {
                let noisy = mode == Mode::TornGarbage;
                torn(log, media, &pending, noisy, &mut rng)
            }
            Mode::Exhaustive => {
                (0..pending.len()).map(|at| whole_if(choice >> at & 1 == 1)).collect()
            }
        };
        let order = match mode {
            Mode::Reordered => reordered(log, media, &window, &mut rng),
            _ => window.writes,
        };
        Cut { index, order, fates: pending.into_iter().zip(fates).collect() }
    }

    /// The members after the cut; `base` is what they held when the log began.
    pub fn image(&self, log: &Log, base: &[Medium]) -> Vec<Medium> {
        let mut media = base.to_vec();
        let mut fates = vec![Fate::Whole; log.writes.len()];
        for (write, fate) in &self.fates {
            fates[*write] = *fate;
        }
        for &number in &self.order {
            let write = &log.writes[number];
            let medium = &mut media[write.member];
            match fates[number] {
                Fate::Lost => {}
                Fate::Whole => medium.write(write.start, &write.data),
                Fate::Torn(tear) => {
                    let (start, data) = torn_part(write, tear, medium);
                    medium.write(start, &data);
                }
            }
        }
        media
    }
}

/// Fates of which at least one is torn, when there is a pending write at all. Now and then all
/// are, and all at their first sector, where structures keep what matters.
fn torn(log: &Log, media: &[Medium], pending: &[usize], noisy: bool, rng: &mut Rng) -> Vec<Fate> {
    let Some(certain) = (!pending.is_empty()).then(|| rng.below(pending.len() as u64)) else {
        return Vec::new();
    };
    let torn_of_4 = [1, 2, 4][rng.below(3) as usize];
    let at_start = rng.below(3) == 0;
    (0..)
        .zip(pending)
        .map(|(at, write)| {
            let draw = rng.below(4);
            if at != certain && draw >= torn_of_4 {
                return if draw == 3 { Fate::Lost } else { Fate::Whole };
            }
            let write = &log.writes[*write];
            if media[write.member].writes_whole_blocks() {
                return torn_between_blocks(write.data.len() as u64, rng);
            }
            let sectors = (write.data.len() * SECTORS) as u64;
            // Without noise a tear before the first sector would be no tear.
            let first = u64::from(!noisy);
            let sector = match at_start {
                true => first,
                false => first + rng.below(sectors - first),
            };
            Fate::Torn(Tear {
                sector: sector as usize,
                front: rng.below(2) == 0,
                noise: noisy.then(|| rng.next_u64()),
            })
        })
        .collect()
}

/// What becomes of a write to a trusted disk.
fn torn_between_blocks(blocks: u64, rng: &mut Rng) -> Fate {
    if blocks == 1 {
        return [Fate::Lost, Fate::Whole][rng.below(2) as usize];
    }
    Fate::Torn(Tear {
        sector: (1 + rng.below(blocks - 1)) as usize * SECTORS,
        front: rng.below(2) == 0,
        noise: None,
    })
}

/// The part of a torn write that reaches the medium, in whole blocks.
fn torn_part(write: &LoggedWrite, tear: Tear, medium: &Medium) -> (u64, Vec<Block>) {
    let sectors = write.data.len() * SECTORS;
    // With noise, the sector of the tear is touched in any case.
    let touched = match (tear.front, tear.noise) {
        (true, None) => 0..tear.sector,
        (true, Some(_)) => 0..tear.sector + 1,
        (false, _) => tear.sector..sectors,
    };
    let is_new = |sector: usize| match tear.front {
        true => sector < tear.sector,
        false => sector >= tear.sector,
    };
    let (first, last) = (touched.start / SECTORS, (touched.end - 1) / SECTORS);
    let mut data = Vec::new();
    for block in first..=last {
        let mut content = **medium.block(write.start + block as u64);
        for (at, target) in content.chunks_exact_mut(SECTOR_BYTES).enumerate() {
            let sector = block * SECTORS + at;
            let noise_seed = tear.noise.filter(|_| sector == tear.sector);
            if is_new(sector) || noise_seed.is_some() {
                let from = at * SECTOR_BYTES;
                target.copy_from_slice(&write.data[block][from..from + SECTOR_BYTES]);
            }
            if let Some(seed) = noise_seed {
                noise(seed, &mut target[noise_start(seed)..]);
            }
        }
        data.push(block_of(&content));
    }
    (write.start + first as u64, data)
}

/// Where in a torn sector the noise begins: at its start, or anywhere after good bytes.
fn noise_start(seed: u64) -> usize {
    let mut rng = Rng::new(seed, 18);
    match rng.below(2) {
        0 => 0,
        _ => rng.below(SECTOR_BYTES as u64) as usize,
    }
}

/// Fills bytes with noise.
pub fn noise(seed: u64, target: &mut [u8]) {
    let mut rng = Rng::new(seed, 17);
    for word in target.chunks_mut(8) {
        let bytes = rng.next_u64().to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

/// The writes in another order that no one could tell from the true one while the power was on.
fn reordered(log: &Log, media: &[Medium], window: &Window, rng: &mut Rng) -> Vec<usize> {
    let mut order = window.writes.clone();
    let Some(first) = window.pending.first().copied() else {
        return order;
    };
    let movable = (order.len() - first) as u64;
    if movable < 2 {
        return order;
    }
    for _ in 0..4 * movable {
        let at = first + rng.below(movable - 1) as usize;
        if !log.is_ordered(order[at], order[at + 1], media) {
            order.swap(at, at + 1);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::disk::{Geometry, Media};
    use imbrex_core::operation::Cause;
    use imbrex_core::units::BlockCount;

    fn write(start: u64, byte: u8, submitted: u64, completed: Option<u64>) -> LoggedWrite {
        LoggedWrite {
            member: 0,
            start,
            data: vec![block_of(&[byte; 4096]); 2],
            submitted,
            completed,
            durable: false,
            dropped: false,
            cause: Cause::Host,
        }
    }

    /// Two writes to one place one after the other, and one to another place in flight.
    fn log() -> Log {
        Log {
            events: 5,
            writes: vec![write(0, 1, 0, Some(1)), write(0, 2, 2, Some(3)), write(4, 3, 4, None)],
            ..Log::default()
        }
    }

    fn base() -> Vec<Medium> {
        vec![Medium::new(&Geometry::plain(BlockCount(8), Media::SolidState))]
    }

    fn first_bytes(media: &[Medium]) -> Vec<u8> {
        (0..8).map(|at| media[0].block(at)[0]).collect()
    }

    #[test]
    fn modes_apply_what_they_say() {
        let (log, base) = (log(), base());
        let image = |mode, choice| {
            let cut = Cut::draw(&log, &base, 5, mode, choice);
            first_bytes(&cut.image(&log, &base))
        };
        assert_eq!(image(Mode::None, 0), [0; 8]);
        assert_eq!(image(Mode::All, 0), [2, 2, 0, 0, 3, 3, 0, 0]);
        assert_eq!(image(Mode::Exhaustive, 0b001), [1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(image(Mode::Exhaustive, 0b101), [1, 1, 0, 0, 3, 3, 0, 0]);
        assert_eq!(image(Mode::Exhaustive, 0b011), [2, 2, 0, 0, 0, 0, 0, 0]);
        for choice in 0..200 {
            let found = image(Mode::Prefix, choice);
            assert!(found[4] == 0 || found[0] == 2, "a prefix has no holes");
        }
    }

    #[test]
    fn an_overwrite_that_came_after_never_lies_below() {
        let (log, base) = (log(), base());
        for choice in 0..500 {
            let cut = Cut::draw(&log, &base, 5, Mode::Reordered, choice);
            if cut.fates[1].1 == Fate::Whole {
                assert_eq!(first_bytes(&cut.image(&log, &base))[0], 2);
            }
        }
    }

    #[test]
    fn a_torn_write_has_an_edge_at_a_sector() {
        let (log, base) = (log(), base());
        let mut seen_mix = false;
        for choice in 0..200 {
            for mode in [Mode::Torn, Mode::TornGarbage] {
                let cut = Cut::draw(&log, &base, 5, mode, choice);
                let is_torn = |fate: &(usize, Fate)| matches!(fate.1, Fate::Torn(_));
                assert!(cut.fates.iter().any(is_torn));
                let media = cut.image(&log, &base);
                for at in 0..8 {
                    let block = media[0].block(at);
                    let sectors: Vec<&[u8]> = block.chunks(SECTOR_BYTES).collect();
                    let whole = |sector: &&&[u8]| sector.iter().all(|byte| *byte == sector[0]);
                    let noisy = sectors.len() - sectors.iter().filter(whole).count();
                    assert!(noisy <= if mode == Mode::Torn { 0 } else { 2 });
                    seen_mix |= sectors.iter().any(|sector| sector[0] != sectors[0][0]);
                }
            }
        }
        assert!(seen_mix);
    }
}
