//! `imbrex doctor`: what kind of disk this is, and what that means.

mod advice;
mod identify;
mod models;
mod nearest;

use super::console::emit;
use crate::args::DoctorArgs;
use crate::failure::Failure;
use advice::FIND_OUT;
use identify::{Confidence, Identity, Sysfs};
use imbrex_sim::bench::{Rebuild, Subject, estimate_rebuild};
use models::Kind;
use serde_json::json;
use std::path::Path;

/// Says what a disk is, what that means, and how long a rebuild onto it would take. Fails after that
/// when a model was named that is not in the table.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut identities = match &args.disk {
        Some(disk) => vec![identity_of(&args.sysfs, disk)?],
        None => all(&args.sysfs)?,
    };
    for identity in &mut identities {
        let nearest = nearest::nearest(identity)?;
        (identity.nearest_drive, identity.nearest_drive_why) = nearest.unzip();
    }
    let mut documents = Vec::new();
    let mut text = String::new();
    for identity in &identities {
        let advice = advice::of(identity.kind);
        let find_out = (identity.kind == Kind::Unknown).then_some(FIND_OUT);
        // Without a disk named, a list; simulations only for the one that is asked about.
        let rebuild = match args.disk.is_some() && !args.no_rebuild {
            true => rebuild_of(identity)?,
            false => None,
        };
        if args.json {
            documents.push(json!({
                "disk": identity,
                "uses": advice,
                "find_out": find_out,
                "rebuild": rebuild,
            }));
            continue;
        }
        text.push_str(&describe(identity));
        if args.disk.is_some() {
            text.push_str(&describe_nearest(identity));
            for advice in advice {
                text.push_str(&format!(
                    "  {:<30} {:<12} {}\n",
                    advice.r#use,
                    advice.verdict.words(),
                    advice.why
                ));
            }
            if let Some(how) = find_out {
                text.push_str(&format!("  to find out: {how}\n"));
            }
        }
        if let Some(rebuild) = &rebuild {
            text.push_str(&describe_rebuild(identity, rebuild));
        }
    }
    match args.json {
        true => emit(&format!("{}\n", json!({"disks": documents}))),
        false => emit(&text),
    }
    match &identities[..] {
        [identity] if identity.device.is_none() && identity.kind == Kind::Unknown => Err(format!(
            "{}: not in the table of known models; accepted: a block device such as /dev/sda, or the \
             model of a disk such as ST8000AS0002",
            identity.model.as_deref().unwrap_or_default()
        )
        .into()),
        _ => Ok(()),
    }
}

/// What is known of a device, by its name or a path that leads to it, or of a model.
fn identity_of(root: &Path, disk: &str) -> Result<Identity, Failure> {
    if disk.trim().is_empty() {
        return Err(
            "the model is empty; accepted: /dev/sda, or a model such as ST8000AS0002".into()
        );
    }
    let device_of = |path: &str| {
        let name = path.strip_prefix("/dev/").unwrap_or(path);
        (!name.contains('/')).then(|| Sysfs::of(root, name))?
    };
    // Links such as those in /dev/disk/by-id lead to the name that sysfs uses.
    let target = Path::new(disk).canonicalize().ok();
    let target = target.as_ref().and_then(|path| path.to_str());
    if let Some(sysfs) = device_of(disk).or_else(|| device_of(target?)) {
        return Ok(identify::device(disk, &sysfs));
    }
    let identity = identify::of_model(Some(disk));
    if identity.kind != Kind::Unknown || (target.is_none() && !disk.contains('/')) {
        return Ok(identity);
    }
    let wrong = match target {
        Some(_) => "is not a block device".to_string(),
        None => format!("no such block device in {}", root.join("class/block").display()),
    };
    Err(format!(
        "{disk}: {wrong}; accepted: a block device such as /dev/sda, or the model of a disk such as \
         ST8000AS0002"
    )
    .into())
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

/// The nearest drive model, why it is that one, and how to try a workload on it.
fn describe_nearest(identity: &Identity) -> String {
    let nearest = identity.nearest_drive.as_ref();
    let Some((drive, why)) = nearest.zip(identity.nearest_drive_why.as_ref()) else {
        return String::new();
    };
    let how = nearest::how_to_try(identity.kind, drive);
    let how = how.map_or(String::new(), |how| format!("  a workload on it: {how}\n"));
    format!("  nearest model: `{drive}`, {why}\n{how}")
}

/// Rebuilds onto the drive of the library that is nearest to the disk.
fn rebuild_of(identity: &Identity) -> Result<Option<Rebuild>, Failure> {
    let takes_writes_anywhere =
        matches!(identity.kind, Kind::DriveManaged | Kind::HostAware | Kind::Conventional);
    let nearest = identity.nearest_drive.as_ref();
    let Some(drive) = nearest.filter(|_| takes_writes_anywhere) else {
        return Ok(None);
    };
    let subject = Subject {
        drive: drive.to_string(),
        settings: Vec::new(),
        seed: 0,
        quick: false,
        traces: None,
    };
    Ok(Some(estimate_rebuild(&subject, identity.capacity_bytes)?))
}

fn describe_rebuild(identity: &Identity, rebuild: &Rebuild) -> String {
    let mut text = format!(
        "  simulated on `{}` for {:.1} TB: a rebuild in sequence takes {:.1} h, one of {} KiB \
         records (a resilver) {:.1} h in order of address and {:.1} h in runs that lie anywhere, {:.1} \
         times as long\n",
        rebuild.drive,
        rebuild.capacity_bytes as f64 / 1e12,
        rebuild.sequential_hours,
        rebuild.record_bytes >> 10,
        rebuild.resilver_in_order_hours,
        rebuild.resilver_hours,
        rebuild.resilver_over_sequential,
    );
    if rebuild.resilver_bands_rewritten == Some(0) {
        text.push_str("  no band was cleaned in these simulations: their hours exclude cleaning\n");
    }
    if let Some(published) = &rebuild.published {
        text.push_str(&format!(
            "  published of the `{}`: {} times as long as a conventional disk, {} [{}]; the model says {:.1} \
             times in order of address and {:.1} times in runs that lie anywhere, so its hours tell that a \
             resilver is slow, not how slow\n",
            rebuild.drive,
            published.times,
            published.what,
            published.source,
            published.model_times[0],
            published.model_times[1]
        ));
    } else if matches!(identity.kind, Kind::DriveManaged | Kind::HostAware) {
        text.push_str(
            "  no resilver of this drive was published to hold the model to; how far off it is where one was: \
             `imbrex drive bench wd40efax`, row V40\n",
        );
    }
    text.push_str(&format!("  {}\n", rebuild.assumptions));
    text
}
