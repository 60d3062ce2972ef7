//! Layers that pass on what they are asked: a part of a node, and nodes that are joined.

use super::super::workload;
use super::{BufferBound, Kind, REQUESTS};
use imbrex_core::array::raid1::{Raid1, Raid1Keeping};
use imbrex_core::array::{Level, Raid};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::idle_control::{
    DecisionSettings, GhostSettings, IdleControl, IdleControlSettings, IdlePolicy, IdlerPolicy,
    IdlerSettings, OnFlush, TakenSpeed,
};
use imbrex_core::layer::Layer;
use imbrex_core::scheduler::{AreaCLook, Policy, Quota, Scheduler, SchedulerSettings};
use imbrex_core::slice::Slice;
use imbrex_core::span::Span;
use imbrex_core::stripe::Stripe;
use imbrex_core::units::{BlockCount, Duration, Lba};

/// What passes data on keeps none.
const PASSES_ON: BufferBound =
    BufferBound { blocks: 0, because: "data goes from the host to the disk and back" };

/// A layer that passes flushes on, over disks that are trusted with their data.
fn passing(
    disks: [u64; 3],
    build: impl Fn(&[Geometry]) -> (Box<dyn Layer>, Geometry) + 'static,
) -> Kind {
    let disks: Vec<_> = (disks.iter().filter(|blocks| **blocks > 0))
        .map(|blocks| Geometry::plain(BlockCount(*blocks), Media::Conventional))
        .collect();
    Kind {
        whole_blocks: disks.iter().map(|disk| disk.blocks.0).collect(),
        checked_from: None,
        kept_buffers: 0,
        never_spoils: false,
        store: None,
        beneath: vec![],
        passes_on: true,
        known: None,
        disks,
        is_durable: true,
        buffers: PASSES_ON,
        loses_on_failure: false,
        build: Box::new(build),
    }
}

pub fn scheduler() -> Kind {
    passing([90, 0, 0], |below| {
        let settings = SchedulerSettings {
            policy: Policy::AreaCLook(AreaCLook::new(Lba(40), Quota::Requests(3))),
            max_wait: Some(Duration::from_us(50)),
            clean_wait: None,
            device_depth: 2,
        };
        let failure = FlushFailure::default();
        (Box::new(Scheduler::new(settings, &failure)), below[0].clone())
    })
}

/// A controller that holds requests for short whiles: by the clock, or by what it takes the disk to hold.
pub fn idle_control(by_its_books: bool) -> Kind {
    passing([90, 0, 0], move |below| {
        let ghost = GhostSettings {
            blocks: BlockCount(50),
            entries: Some(20),
            device: BlockCount(90),
            zone_blocks: BlockCount(10),
            has_reports: false,
            used_at_start: 0.9,
            trigger: Duration(100),
            zone_clean: Duration(100),
        };
        let decision = IdlerSettings {
            l_min: Duration::from_us(1),
            l_max: Duration::from_us(4),
            l_step: Duration::from_us(1),
            ..IdlerSettings::default()
        };
        let policy = match by_its_books {
            false => {
                IdlePolicy::AtIc { execution: Duration::from_us(9), idle: Duration::from_us(5) }
            }
            true => IdlePolicy::Idler(IdlerPolicy {
                decision: DecisionSettings::Equations(decision),
                samples: 3,
                taken_speed: TakenSpeed::OfAllTime,
                ghost,
                report_every: Duration::from_us(50),
            }),
        };
        let on_flush = if by_its_books { OnFlush::Hold } else { OnFlush::EndIdle };
        let hold_max = Duration::from_us(40);
        let settings = IdleControlSettings { policy, on_flush, hold_max };
        let failure = FlushFailure::default();
        (Box::new(IdleControl::new(settings, &below[0], &failure)), below[0].clone())
    })
}

pub fn slice() -> Kind {
    passing([200, 0, 0], |below| {
        let failure = FlushFailure::default();
        let (slice, above) = Slice::new(Extent::new(37, 90), &below[0], &failure).expect("inside");
        (Box::new(slice), above)
    })
}

pub fn span() -> Kind {
    passing([41, 7, 60], |below| {
        let below: Vec<_> = below.iter().collect();
        let (span, above) = Span::new(&below).expect("plain disks");
        (Box::new(span), above)
    })
}

pub fn stripe(disks: [u64; 3], chunk: u64) -> Kind {
    let kind = passing(disks, move |below| {
        let below: Vec<_> = below.iter().collect();
        let (stripe, above) = Stripe::new(&below, BlockCount(chunk)).expect("plain disks");
        (Box::new(stripe), above)
    });
    Kind {
        buffers: BufferBound {
            blocks: REQUESTS * workload::LONGEST,
            because: "the data of a request that a disk has several chunks of is gathered",
        },
        ..kind
    }
}

/// An array with copies or parity over disks that are trusted with their data. It remembers nothing over a
/// start.
pub fn raid(level: Level, disks: &[u64]) -> Kind {
    let disks: Vec<_> = disks
        .iter()
        .map(|blocks| Geometry::plain(BlockCount(*blocks), Media::Conventional))
        .collect();
    let columns = disks.len() as u64;
    let buffers = BufferBound {
        blocks: REQUESTS * 2 * columns * (workload::LONGEST + 1),
        because: "what each request changes, and what it replaces, of every member",
    };
    Kind::new(disks, false, buffers, move |below| {
        let below: Vec<_> = below.iter().collect();
        Raid::new(level, &below, 0).expect("plain disks")
    })
}

/// An array of copies that remembers nothing over a start.
pub fn raid1(disks: &[u64]) -> Kind {
    let disks: Vec<_> = disks
        .iter()
        .map(|blocks| Geometry::plain(BlockCount(*blocks), Media::Conventional))
        .collect();
    let columns = disks.len() as u64;
    let buffers = BufferBound {
        blocks: REQUESTS * 2 * columns * (workload::LONGEST + 1),
        because: "what each request writes to every member",
    };
    Kind::new(disks, false, buffers, move |below| {
        let below: Vec<_> = below.iter().collect();
        Raid1::new(&below, 0, None, None).expect("plain disks")
    })
}

/// An array of copies that keeps what it knows, over disks that write a block whole or not at all.
pub fn durable_raid1(members: usize) -> Kind {
    let keeping = Raid1Keeping {
        durability: DurabilitySettings { ring_blocks: 24, unflushed_blocks_max: 16 },
        region_rows: 8,
        memory_bytes: 1 << 12,
        lost_after: Duration::from_ms(60_000),
    };
    let disk = Geometry::plain(BlockCount(140), Media::Conventional);
    let columns = members as u64;
    let buffers = BufferBound {
        blocks: REQUESTS * 2 * columns * (workload::LONGEST + 1) + 200,
        because: "what each request writes to every member, its journal, tables, and what is compared",
    };
    let kind = Kind::new(vec![disk; members], true, buffers, move |below| {
        let below: Vec<_> = below.iter().collect();
        Raid1::new(&below, 0, None, Some(keeping)).expect("plain disks")
    });
    Kind { whole_blocks: vec![140; members], ..kind }
}
