//! What the journal of a parity array says, as a document and in words.

use super::layers::{line_of_member, member_of_array};
use imbrex_serve::fsck::ParityArrayState;
use serde_json::{Value, json};

/// What the array has, a line, and behind it each member.
pub fn words(state: &ParityArrayState) -> String {
    let mut text = format!(
        "  parity array: {} blocks written, {} of them in {} slots of the data disk; {} band rows, {} is spare\n",
        state.live.blocks(),
        state.slots.len(),
        state.shape.slots,
        state.band_rows.len() + 1,
        state.spare
    );
    if !state.unreadable.is_empty() {
        text += &format!("  {} blocks that no member can give\n", state.unreadable.len());
    }
    if state.in_doubt > 0 {
        text += &format!("  {} writes may be on the members or not\n", state.in_doubt);
    }
    for (column, member) in state.members.iter().enumerate() {
        text += &line_of_member((column, member), &state.nodes, state.words_of(column));
    }
    text
}

/// What the array has; where each block is when `all` is asked for.
pub fn document(state: &ParityArrayState, all: bool) -> Value {
    let members = state.members.iter().enumerate();
    let members = members
        .map(|(column, member)| member_of_array(member, &state.nodes, state.rows_of(column)));
    let mut document = json!({
        "members": members.collect::<Vec<Value>>(),
        "places_in_turn": state.shape.appends,
        "band_blocks": state.shape.bands.band_blocks(),
        "band_rows": state.band_rows.len(),
        "spare": state.spare,
        "slots": state.shape.slots,
        "first_table_block": state.shape.layout.tables().start.0,
        "first_block": state.shape.layout.first_block(),
        "tables_written": state.tables.blocks(),
        "unreadable_blocks": state.unreadable.len(),
        "region_rows": state.shape.layout.region_rows,
        "missed_regions": state.missed.blocks(),
        "live_blocks": state.live.blocks(),
        "blocks_in_slots": state.slots.len(),
        "next_place": state.next_place,
        "next_write": state.next_write,
        "writes_in_doubt": state.in_doubt,
        "is_collecting": state.is_collecting,
    });
    if all {
        let places = state.places.iter().map(|(block, (blocks, first))| [*block, *blocks, *first]);
        let slots = state.slots.iter().map(|(place, slot)| [*place, *slot]);
        let held = state.held.iter().map(|held| held.runs().collect::<Vec<_>>());
        document["places"] = json!(places.collect::<Vec<_>>());
        document["live"] = json!(state.live.runs().collect::<Vec<_>>());
        document["slot_of"] = json!(slots.collect::<Vec<_>>());
        document["band_rows_lie_at"] = json!(state.band_rows);
        document["unreadable_places"] = json!(state.unreadable);
        document["missed"] = json!(state.missed.runs().collect::<Vec<_>>());
        document["held"] = json!(held.collect::<Vec<_>>());
    }
    document
}
