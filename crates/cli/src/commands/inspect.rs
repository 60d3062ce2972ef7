//! `imbrex inspect`.

mod layers;
mod parity_array;

use super::console::emit;
use super::image_shape::{refusal, shape_of};
use crate::args::InspectArgs;
use crate::failure::Failure;
use imbrex_core::durability::superblock::Superblock;
use imbrex_serve::fsck::{self, Checks, JournalState, MemberState, Reading};
use imbrex_serve::image::{Image, ImageMember};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Prints what the members of an image hold.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let image = Image::open_read_only(&args.dir).map_err(refusal)?;
    let shape = shape_of(&image, false)?;
    let reading = fsck::read(&shape, Some(image.description().uuid), Checks::default());
    if args.json {
        let document = document(&image, &reading, args.all);
        emit(&format!("{}\n", serde_json::to_string_pretty(&document)?));
    } else {
        emit(&words(&image, &reading));
    }
    Ok(())
}

fn document(image: &Image, reading: &Reading, all: bool) -> Value {
    let members: Vec<Value> =
        reading.members.iter().map(|member| member_document(member, all)).collect();
    let findings: Vec<Value> = reading
        .findings
        .kept
        .iter()
        .map(|finding| {
            json!({
                "member": finding.member,
                "structure": finding.structure,
                "problem": finding.problem,
            })
        })
        .collect();
    json!({
        "schema": "imbrex.inspect/1",
        "size_bytes": image.description().size_bytes,
        "image": image_document(image),
        "members": members,
        "findings": findings,
        "notes": reading.findings.notes,
    })
}

/// What the description says, the stack aside.
fn image_document(image: &Image) -> Value {
    let description = image.description();
    let disks = description.nodes.iter().map(|node| {
        json!({
            "name": node.name,
            "blocks": node.blocks.0,
            "replacement": node.replacement,
        })
    });
    let members = &description.members;
    let list = members
        .list
        .iter()
        .map(|member| json!({ "number": member.number, "node": member.node, "port": member.port }));
    let labels = description.disks.iter().flat_map(|disks| &disks.list);
    let labels = labels.map(
        |disk| json!({ "number": disk.number, "node": disk.node, "is_labelled": disk.is_labelled }),
    );
    json!({
        "version": image.version(),
        "set": description.uuid.to_string(),
        "disks": disks.collect::<Vec<_>>(),
        "members": list.collect::<Vec<_>>(),
        "next_member": members.next,
        "labels": labels.collect::<Vec<_>>(),
        "next_disk": description.disks.as_ref().map(|disks| disks.next),
    })
}

fn member_document(member: &MemberState, all: bool) -> Value {
    let mut document = json!({ "name": member.name, "blocks": member.blocks });
    if let Some(journal) = &member.journal {
        let copies: Vec<Value> = journal
            .superblocks
            .copies
            .iter()
            .map(|copy| match &copy.found {
                Ok(superblock) => {
                    let mut value = superblock_document(superblock);
                    value["address"] = json!(copy.address);
                    value
                }
                Err(problem) => json!({ "address": copy.address, "problem": problem }),
            })
            .collect();
        document["superblocks"] = json!(copies);
        document["journal"] = journal_document(journal, all);
    }
    layers::add_document(&member.layer, all, &mut document);
    document
}

fn superblock_document(superblock: &Superblock) -> Value {
    json!({
        "generation": superblock.generation,
        "epoch": superblock.epoch,
        "layer": superblock.layer,
        "set": superblock.set.to_string(),
        "member": superblock.member.to_string(),
        "member_blocks": superblock.member_blocks,
        "area_blocks": superblock.area_blocks,
        "checkpoint_blocks": superblock.checkpoint_blocks,
        "checkpoint_place": superblock.checkpoint_place,
        "clean": superblock.clean,
        "checkpoint_checksum": superblock.checkpoint_checksum,
        "checkpoint_bytes": superblock.checkpoint_bytes,
        "checkpoint_pages": superblock.pages(),
        "replay_from": superblock.replay_from,
        "compatible_features": superblock.compatible_features,
        "read_only_features": superblock.read_only_features,
        "required_features": superblock.required_features,
    })
}

fn journal_document(journal: &JournalState, all: bool) -> Value {
    let (start, blocks) = fsck::ring(&journal.superblock);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for record in &journal.records {
        *kinds.entry(record.kind.to_string()).or_default() += 1;
    }
    let mut document = json!({
        "generation": journal.superblock.generation,
        "checkpoint_bytes": journal.checkpoint.len(),
        "ring_start": start,
        "ring_blocks": blocks,
        "replay_from": journal.superblock.replay_from,
        "next": journal.next,
        "mark": journal.mark,
        "damaged_end": journal.damaged_end.map(|damaged| {
            json!({ "block": damaged.lsn, "data_blocks_max": damaged.data_blocks_max })
        }),
        "records": kinds,
        "checkpoint_records": records_of_checkpoint(journal),
    });
    if let Some(page) = &journal.mirror {
        let listed = page.membership.copies.iter();
        let copies: Vec<Value> =
            listed.map(|copy| json!({ "number": copy.number, "is_in": copy.is_in })).collect();
        document["mirror"] = json!({
            "copy": page.index,
            "changes": page.membership.changes,
            "copies": copies,
        });
    }
    if all {
        let records: Vec<Value> = journal
            .records
            .iter()
            .map(|record| {
                let data = record.data.map(|data| [data.start.0, data.blocks.0]);
                let missing = (0..record.checksums.len()).filter(|index| record.is_missing(*index));
                json!({
                    "lsn": record.lsn,
                    "kind": record.kind,
                    "payload": hex(&record.payload),
                    "data": data,
                    "checksums": record.checksums,
                    "missing": missing.collect::<Vec<usize>>(),
                })
            })
            .collect();
        document["every_record"] = json!(records);
    }
    document
}

/// How many of the records are in the checkpoint.
fn records_of_checkpoint(journal: &JournalState) -> usize {
    journal.records.iter().filter(|record| record.lsn.is_none()).count()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn words(image: &Image, reading: &Reading) -> String {
    let size = image.description().size_bytes;
    let mut text = format!("device of {}\n", imbrex_report::human_bytes(size));
    for ImageMember { number, node, port } in &image.description().members.list {
        text += &format!("member {number}: `{port}` of node `{node}`\n");
    }
    for member in &reading.members {
        text += &format!("\n{}: {} blocks\n", member.name, member.blocks);
        let Some(journal) = &member.journal else {
            text += "  its journal cannot be read\n";
            continue;
        };
        for (number, copy) in journal.superblocks.copies.iter().enumerate() {
            text += &match &copy.found {
                Ok(found) => format!(
                    "  superblock {number} at block {}: generation {}, epoch {}{}\n",
                    copy.address,
                    found.generation,
                    found.epoch,
                    if found.clean { ", clean" } else { "" }
                ),
                Err(problem) => {
                    format!("  superblock {number} at block {}: {problem}\n", copy.address)
                }
            };
        }
        let (_, ring) = fsck::ring(&journal.superblock);
        let behind = records_of_checkpoint(journal);
        let parts = match behind {
            0 => String::new(),
            _ => format!(" and {behind} records"),
        };
        text += &format!(
            "  checkpoint: {} bytes{parts}; journal: {} of {ring} blocks with {} records\n",
            journal.checkpoint.len(),
            journal.next - journal.superblock.replay_from,
            journal.records.len() - behind
        );
        text += &layers::words(&member.layer);
    }
    for note in &reading.findings.notes {
        text += &format!("\n{note}");
    }
    for finding in &reading.findings.kept {
        text += &format!("\n{}: {}: {}", finding.member, finding.structure, finding.problem);
    }
    text.trim_end().to_owned() + "\n"
}
