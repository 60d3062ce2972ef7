//! What the journal of each kind of layer says, as a document and in words.

use super::parity_array;
use imbrex_serve::fsck::{
    ArrayMember, ArrayState, BufferState, CacheState, Has, IntentState, LayerState, Noted,
    SBlockRegion, SBlocksState, SegmentsState, TranslationState,
};
use serde_json::{Value, json};

/// Adds what a layer holds to the document of its member.
pub fn add_document(layer: &LayerState, all: bool, document: &mut Value) {
    match layer {
        LayerState::Unknown => {}
        LayerState::Cache(cache, intent) => {
            document["cache"] = cache_document(cache, all);
            document["write_intent"] = intent_document(intent, all);
        }
        LayerState::Translation(translation) => {
            document["translation"] = translation_document(translation, all);
        }
        LayerState::Segments(segments) => {
            document["segments"] = segments_document(segments, all);
        }
        LayerState::SBlocks(translation) => {
            document["s_blocks"] = s_blocks_document(translation, all);
        }
        LayerState::Array(array) => document["array"] = array_document(array, all),
        LayerState::ParityArray(array) => {
            document["parity_array"] = parity_array::document(array, all);
        }
        LayerState::Buffer(buffer) => document["memory_buffer"] = buffer_document(buffer, all),
    }
}

/// What a layer holds, a line.
pub fn words(layer: &LayerState) -> String {
    match layer {
        LayerState::Unknown => String::new(),
        LayerState::Cache(cache, _) => format!(
            "  cache: {} slots, {} dirty blocks, {} clean ones known\n",
            cache.slots,
            cache.dirty.len(),
            cache.clean.len()
        ),
        LayerState::Translation(state) => format!(
            "  translation: {} live blocks in a log of {}; {} bands\n",
            state.logged.len(),
            state.log_blocks,
            state.bands.len()
        ),
        LayerState::Segments(state) => format!(
            "  segments: {} in {} regions, {} of {} slots noted; checksums {}\n",
            state.geometry.layout.segments(),
            state.geometry.layout.regions(),
            state.noted.len(),
            state.slots(),
            if state.blank.is_some() { "on" } else { "off" }
        ),
        LayerState::SBlocks(state) => {
            let sum = |count: fn(&SBlockRegion) -> usize| -> usize {
                state.regions.iter().map(count).sum()
            };
            format!(
                "  S-blocks: {} of {} hold data in {} regions; {} of {} places of rings in use\n",
                sum(|region| region.valid()),
                state.layout.segments,
                state.regions.len(),
                sum(|region| region.ring.places.len()),
                state.layout.ring_places * state.regions.len() as u64
            )
        }
        LayerState::Array(state) => array_words(state),
        LayerState::ParityArray(state) => parity_array::words(state),
        LayerState::Buffer(state) => format!(
            "  memory buffer: {} dirty blocks in a log of {} places\n",
            state.live.len(),
            state.places
        ),
    }
}

fn cache_document(cache: &CacheState, all: bool) -> Value {
    let mut document = json!({
        "slots": cache.slots,
        "dirty_blocks": cache.dirty.len(),
        "clean_slots": cache.clean.len(),
    });
    if all {
        let dirty = cache.dirty.iter();
        let dirty: Vec<Value> =
            dirty.map(|(lba, place)| json!([lba, place.slot, place.checksum])).collect();
        document["dirty"] = json!(dirty);
    }
    document
}

fn intent_document(intent: &IntentState, all: bool) -> Value {
    let pages: Vec<Value> = intent
        .pages
        .iter()
        .map(|page| match page {
            Err(problem) => json!({ "problem": problem }),
            Ok(page) => {
                let mut document = json!({
                    "number": page.version,
                    "region_blocks": page.region_blocks,
                    "regions": page.regions,
                    "marked_regions": page.marked.len(),
                    "generation": page.generation,
                    "pending_generation": page.pending,
                });
                if all {
                    document["marked"] = json!(page.marked);
                }
                document
            }
        })
        .collect();
    json!(pages)
}

fn translation_document(state: &TranslationState, all: bool) -> Value {
    let mut document = json!({
        "device_blocks": state.blocks,
        "log_blocks": state.log_blocks,
        "head": state.head,
        "tail": state.tail,
        "logged_blocks": state.logged.len(),
        "zeroed_blocks": state.zeroed.blocks(),
        "lost_blocks": state.lost.blocks(),
        "generation": state.generation,
        "band_count": state.bands.len(),
        "open_bands": state.open.len(),
        "scratch": state.scratch.map(|scratch| {
            [scratch.band, scratch.from, scratch.blocks, scratch.place]
        }),
    });
    if all {
        let logged: Vec<Value> = state
            .logged
            .iter()
            .map(|(lba, logged)| json!([lba, logged.position, logged.checksum]))
            .collect();
        let bands: Vec<[u64; 4]> = state
            .bands
            .iter()
            .map(|band| [band.home, band.blocks, band.table, band.pointer])
            .collect();
        document["logged"] = json!(logged);
        document["zeroed"] = json!(state.zeroed.runs().collect::<Vec<_>>());
        document["lost"] = json!(state.lost.runs().collect::<Vec<_>>());
        document["bands"] = json!(bands);
        document["open"] = json!(state.open.iter().collect::<Vec<_>>());
    }
    document
}

fn segments_document(state: &SegmentsState, all: bool) -> Value {
    let identity = &state.geometry.identity;
    let mut document = json!({
        "block": identity.block,
        "region_tracks": identity.region_tracks,
        "segments": identity.segments,
        "first_block": identity.first_block,
        "kappa": identity.kappa,
        "regions": state.geometry.layout.regions(),
        "slots": state.slots(),
        "noted_slots": state.noted.len(),
    });
    if let Some(blank) = state.blank {
        document["blank_page"] = json!(blank);
    }
    if all {
        let noted = state.noted.iter().map(|(slot, noted)| match noted {
            Noted::Rewrite { segment, written } => {
                let blocks = (0..written.len()).filter(|block| written[*block]);
                json!({ "slot": slot, "segment": segment, "written": blocks.collect::<Vec<_>>() })
            }
            Noted::Zero { segment, segments } => {
                json!({ "slot": slot, "segment": segment, "zeroed_segments": segments })
            }
        });
        document["noted"] = json!(noted.collect::<Vec<Value>>());
    }
    document
}

fn s_blocks_document(state: &SBlocksState, all: bool) -> Value {
    let regions = || state.regions.iter();
    let mut document = json!({
        "block_blocks": state.layout.block,
        "segment_blocks": state.layout.segment,
        "segments": state.layout.segments,
        "regions": state.regions.len(),
        "ring_places": state.layout.ring_places,
        "valid_segments": regions().map(SBlockRegion::valid).sum::<usize>(),
        "log_positions": regions().map(|region| u64::from(region.used)).sum::<u64>(),
        "used_ring_places": regions().map(|region| region.ring.places.len()).sum::<usize>(),
    });
    if all {
        let regions = regions().map(|region| {
            let ring = region.ring.places.iter();
            let ring = ring.map(|(place, it)| json!([place, it.block, it.parts]));
            let mut document = json!({
                "tail": region.tail,
                "used": region.used,
                "owners": region.owners,
                "ring": ring.collect::<Vec<Value>>(),
            });
            if !region.tables.is_empty() {
                document["tables"] = json!(region.tables);
            }
            document
        });
        document["every_region"] = json!(regions.collect::<Vec<Value>>());
    }
    document
}

fn array_words(state: &ArrayState) -> String {
    let mut text = format!(
        "  array: {} of {} regions marked, {} unreadable rows\n",
        state.marked.len(),
        state.shape.regions,
        state.unreadable.len()
    );
    for (column, member) in state.members.iter().enumerate() {
        text += &line_of_member((column, member), &state.nodes, state.words_of(column));
    }
    for (port, node) in state.nodes.iter().enumerate() {
        if !state.members.iter().any(|member| member.port == port) {
            text += &format!("  spare `{node}`\n");
        }
    }
    text
}

/// A member of an array that has so many rows.
pub fn member_of_array(member: &ArrayMember, nodes: &[String], rows: u64) -> Value {
    let (has, before) = match member.has {
        Has::All => ("in", None),
        Has::Out { .. } => ("out", None),
        Has::Blank => ("blank", None),
        Has::Rebuilt(before) => ("rebuilding", Some(before)),
        Has::Returned(before) => ("returning", Some(before)),
    };
    json!({
        "port": member.port,
        "node": nodes[member.port],
        "number": member.number,
        "state": has,
        "rebuilt_to": before,
        "is_partial": member.has == Has::Out { is_partial: true },
        "rows": rows,
    })
}

/// A member of an array with what it has in words, a line.
pub fn line_of_member(
    (column, member): (usize, &ArrayMember),
    nodes: &[String],
    words: Option<String>,
) -> String {
    let words = words.unwrap_or_else(|| "it has all rows".to_owned());
    let (node, number) = (&nodes[member.port], member.number);
    format!("  member {column} (`{node}`, number {number}): {words}\n")
}

fn array_document(state: &ArrayState, all: bool) -> Value {
    let members = state.members.iter().enumerate();
    let members = members
        .map(|(column, member)| member_of_array(member, &state.nodes, state.rows_of(column)));
    let mut document = json!({
        "members": members.collect::<Vec<Value>>(),
        "rows": state.rows(),
        "table_rows": state.shape.table_rows(),
        "region_rows": state.shape.region_rows,
        "regions": state.shape.regions,
        "marked_regions": state.marked.len(),
        "unreadable_rows": state.unreadable.len(),
        "missed_regions": state.missed.len(),
    });
    if all {
        document["marked"] = json!(state.marked);
        document["unreadable"] = json!(state.unreadable);
        document["missed"] = json!(state.missed);
    }
    document
}

fn buffer_document(state: &BufferState, all: bool) -> Value {
    let mut document = json!({
        "places": state.places,
        "dirty_blocks": state.live.len(),
    });
    if all {
        let live = state.live.iter();
        let live = live.map(|(lba, it)| json!([lba, it.place, it.checksum]));
        document["dirty"] = json!(live.collect::<Vec<Value>>());
    }
    document
}
