//! Two caches over two translations over two slices of one shingled disk, under a span. Their flash is
//! two slices of one flash disk.
//!
//! Every slice is as short as it can be, so that the end of one and the start of the next are in use.

use super::{Assembly, Policy, cache, disk, translation};
use imbrex_core::cache::Cache;
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::extent::Extent;
use imbrex_core::slice::{FlushFailure, Slice};
use imbrex_core::span::Span;
use imbrex_core::stack::NodeId;
use imbrex_core::translation::PersistentCache;
use imbrex_core::units::BlockCount;

/// Adds the stack over disks of these names.
pub fn build(assembly: &mut Assembly, flash: &'static str, shingled: &'static str) -> NodeId {
    let drawn = [(); 2].map(|()| translation::draw(&mut assembly.rng, assembly.seed));
    let overlap_tracks = drawn[0].overlap_tracks;
    let drawn = drawn.map(|drawn| drawn.on_overlap(assembly.seed, overlap_tracks));
    let parts = drawn.each_ref().map(|drawn| {
        let conventional = drawn.conventional_tracks(translation::SHINGLED_TRACKS);
        let shingled = drawn.shingled_tracks(conventional);
        (conventional, shingled + overlap_tracks)
    });
    let geometry = translation::shingled_disk(&parts, overlap_tracks);
    let lengths = parts.map(translation::blocks_of);
    let below = sliced(assembly, shingled, geometry, lengths);
    let bands = [0, 1].map(|index| {
        let geometry = assembly.builder.geometry(below[index]);
        let (layer, told) = drawn[index].over(geometry).expect("a slice that is large enough");
        let node = assembly.builder.layer(Box::new(layer), told, &[below[index]]);
        assembly.translations.push(node);
        assembly.builder.number_member(node, PersistentCache::LOG, index as u16);
        node
    });
    let settings = [Policy::Lru, Policy::Pore].map(|it| cache::settings(it, &mut assembly.rng));
    let lengths = settings.each_ref().map(|settings| settings.flash_blocks().0);
    let all = BlockCount(lengths[0] + lengths[1]);
    let below = sliced(assembly, flash, Geometry::plain(all, Media::SolidState), lengths);
    let caches = [0, 1].map(|index| {
        let (flash, backing) = (below[index], bands[index]);
        let builder = &mut assembly.builder;
        let geometries = (builder.geometry(flash), builder.geometry(backing));
        let cache = Cache::new(settings[index].clone(), geometries.0, geometries.1);
        let (cache, told) = cache.unwrap_or_else(|error| panic!("{error}"));
        let node = builder.layer(Box::new(cache), told, &[flash, backing]);
        builder.number_member(node, Cache::FLASH, 2 + 2 * index as u16);
        builder.number_member(node, Cache::BACKING, 3 + 2 * index as u16);
        node
    });
    let geometries = caches.map(|cache| assembly.builder.geometry(cache));
    let (span, told) = Span::new(&geometries).expect("caches take writes anywhere");
    assembly.border = Some(geometries[0].blocks.0);
    assembly.builder.layer(Box::new(span), told, &caches)
}

/// Adds a disk that is cut into two slices of these lengths.
fn sliced(
    assembly: &mut Assembly,
    name: &'static str,
    geometry: Geometry,
    lengths: [u64; 2],
) -> [NodeId; 2] {
    let disk = disk::add(assembly, name, geometry.clone());
    let failure = FlushFailure::default();
    let wanted = [Extent::new(0, lengths[0]), Extent::new(lengths[0], lengths[1])];
    wanted.map(|wanted| {
        let slice = Slice::new(wanted, &geometry, &failure);
        let (slice, told) = slice.unwrap_or_else(|error| panic!("{error}"));
        let member = assembly.members.last_mut().expect("the disk");
        member.parts.push(slice.extent());
        assembly.builder.part(Box::new(slice), told, disk)
    })
}
