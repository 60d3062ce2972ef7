//! `imbrex doctor`: what kind of disk this is, and what that means.

mod advice;
mod identify;
mod models;

use super::emit;
use crate::Failure;
use crate::args::DoctorArgs;
use identify::{Confidence, Identity, Sysfs};
use imbrex_sim::bench::{Rebuild, Subject, estimate_rebuild};
use models::Kind;
use serde_json::json;
use std::path::Path;

/// Stand-ins for disks that the library does not have.
const STAND_IN_SHINGLED: &str = "st8000dm004";
const STAND_IN_CONVENTIONAL: &str = "wd1002faex";

/// Says what a disk is, what that means, and how long a rebuild onto it would take.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let identities = match &args.disk {
        Some(disk) => vec![identity_of(&args.sysfs, disk)?],
        None => all(&args.sysfs)?,
    };
    let mut documents = Vec::new();
    let mut text = String::new();
    for identity in &identities {
        let advice = advice::of(identity.kind);
        // Without a disk named, a list; simulations only for the one that is asked about.
        let rebuild = match args.disk.is_some() && !args.no_rebuild {
            true => rebuild_of(identity)?,
            false => None,
        };
        if args.json {
            documents.push(json!({
                "disk": identity,
                "uses": advice,
                "rebuild": rebuild,
            }));
            continue;
        }
        text.push_str(&describe(identity));
        if args.disk.is_some() {
            for advice in advice {
                text.push_str(&format!(
                    "  {:<30} {:<12} {}\n",
                    advice.r#use,
                    advice.verdict.words(),
                    advice.why
                ));
            }
        }
        if let Some(rebuild) = &rebuild {
            text.push_str(&describe_rebuild(rebuild));
        }
    }
    match args.json {
        true => emit(&format!("{}\n", json!({"disks": documents}))),
        false => emit(&text),
    }
    Ok(())
}

fn identity_of(root: &Path, disk: &str) -> Result<Identity, Failure> {
    let name = disk.strip_prefix("/dev/").unwrap_or(disk);
    if let Some(sysfs) = Sysfs::of(root, name) {
        return Ok(identify::device(disk, &sysfs));
    }
    if disk.starts_with("/dev/") {
        return Err(format!(
            "{disk}: no such block device in {}; accepted: a block device such as /dev/sda, or the \
             model of a disk such as ST8000AS0002",
            root.join("class/block").display()
        )
        .into());
    }
    if disk.trim().is_empty() {
        return Err(
            "the model is empty; accepted: /dev/sda, or a model such as ST8000AS0002".into(),
        );
    }
    Ok(identify::of_model(Some(disk)))
}

/// Every whole disk of the machine.
fn all(root: &Path) -> Result<Vec<Identity>, Failure> {
    let folder = root.join("class/block");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let folder = folder.join(name);
            folder.join("device").exists() && !folder.join("partition").exists()
        })
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(format!(
            "no disk in {}; name a model instead, such as `imbrex doctor ST8000AS0002`",
            folder.display()
        )
        .into());
    }
    Ok(names
        .iter()
        .filter_map(|name| {
            let sysfs = Sysfs::of(root, name)?;
            Some(identify::device(&format!("/dev/{name}"), &sysfs))
        })
        .collect())
}

fn describe(identity: &Identity) -> String {
    let name = match (&identity.device, &identity.model) {
        (Some(device), Some(model)) => format!("{device} ({model})"),
        (Some(name), None) | (None, Some(name)) => name.clone(),
        (None, None) => String::new(),
    };
    let sure = match identity.confidence {
        Confidence::Reported => "says the disk itself",
        Confidence::Known => "by its model",
        Confidence::Likely => "likely, by a sign",
        Confidence::Guess => "nothing says",
    };
    let mut text = format!("{name}: {} ({sure})\n", identity.kind.words());
    for evidence in &identity.evidence {
        text.push_str(&format!("  {}: {}\n", evidence.from, evidence.says));
    }
    text
}

/// Rebuilds onto the disk, or onto the drive of the library that is nearest to it.
fn rebuild_of(identity: &Identity) -> Result<Option<Rebuild>, Failure> {
    let stand_in = match identity.kind {
        Kind::DriveManaged | Kind::HostAware => STAND_IN_SHINGLED,
        Kind::Conventional | Kind::Unknown => STAND_IN_CONVENTIONAL,
        Kind::HostManaged | Kind::SolidState => return Ok(None),
    };
    let drive = identity.nearest_drive.as_deref().unwrap_or(stand_in);
    let subject = Subject {
        drive: drive.to_string(),
        settings: Vec::new(),
        seed: 0,
        quick: true,
        traces: None,
    };
    Ok(Some(estimate_rebuild(&subject, identity.capacity_bytes)?))
}

fn describe_rebuild(rebuild: &Rebuild) -> String {
    format!(
        "  simulated on `{}` for {:.1} TB: a rebuild in sequence takes {:.1} h, one of {} KiB records in \
         runs (a resilver) {:.1} h\n  {}\n",
        rebuild.drive,
        rebuild.capacity_bytes as f64 / 1e12,
        rebuild.sequential_hours,
        rebuild.record_bytes >> 10,
        rebuild.resilver_hours,
        rebuild.assumptions
    )
}
