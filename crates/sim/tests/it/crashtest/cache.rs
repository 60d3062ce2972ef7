//! A durable cache over the smallest durable layer, which keeps its blocks whole.

use super::toy::{self, ShadowStore};
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, PolicySettings, codec};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::operation::Durability;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use imbrex_sim::crashtest::subject::{KnownBlocks, Member, Parts, Subject};
use imbrex_sim::crashtest::workload::Shape;
use std::rc::Rc;

pub fn subject() -> Subject {
    let build = |seed: u64| {
        let settings = CacheSettings {
            capacity_blocks: 40,
            spare_slots: None,
            destage_slots_max: 4,
            destage: Durability::Durable,
            mode: CacheMode::ReadWrite,
            policy: PolicySettings::LRU,
            durability: Some(DurabilitySettings { ring_blocks: 8, unflushed_blocks_max: 32 }),
        };
        let flash = Geometry::plain(settings.flash_blocks(), Media::SolidState);
        let disk = Geometry::plain(ShadowStore::settings().member_blocks, Media::SolidState);
        let backing = Geometry::plain(BlockCount(toy::BLOCKS), Media::Conventional);
        let mut builder = StackBuilder::new(seed);
        let flash_node = builder.disk(flash.clone());
        let disk_node = builder.disk(disk.clone());
        let store = builder.layer(Box::new(ShadowStore::new()), backing.clone(), &[disk_node]);
        let below = [flash_node, store];
        let (cache, geometry) = Cache::new(settings, &flash, &backing).expect("settings");
        let blocks = geometry.blocks.0;
        let top = builder.layer(Box::new(cache), geometry, &below);
        Parts {
            stack: builder.build(top),
            members: vec![
                Member { blocks: Rc::new(JournalOfCache), ..Member::new("flash", flash) },
                Member::new("backing", disk),
            ],
            keeps_state: true,
            shape: Shape { blocks, band_blocks: 24, border: None },
        }
    };
    Subject { name: "cache".to_string(), build: Box::new(build), check: None }
}

/// The journal on the flash of the cache.
struct JournalOfCache;

impl KnownBlocks for JournalOfCache {
    fn record_name(&self, _: u64, kind: u8) -> Option<&'static str> {
        let found = codec::RECORD_KINDS.iter().find(|(number, _)| *number == kind);
        found.map(|(_, name)| *name)
    }
}
