//! `imbrex check`.

use super::check_disks::check_disks;
use super::console::{emit, remark};
use super::image_shape::{refusal, shape_of};
use crate::args::CheckArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_serve::fsck::{self, Checks, Findings};
use imbrex_serve::image::{Image, ImageError};
use serde::Serialize;

/// Damage is left.
const DAMAGE_LEFT: u8 = 4;
/// Nothing could be checked.
const COULD_NOT_RUN: u8 = 8;
/// The command line was wrong.
pub const WRONG_USAGE: u8 = 16;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    clean: bool,
    repaired: u64,
    left: u64,
    findings: Vec<Entry<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Entry<'a> {
    member: &'a str,
    structure: &'a str,
    problem: &'a str,
    repaired: bool,
}

/// Checks an image. The exit status is 0 clean, 1 repaired, 4 damage left, 8 could not run.
pub fn run(args: &CheckArgs) -> ExitCode {
    let findings = match check(args) {
        Ok(findings) => findings,
        Err(failure) => {
            remark!("imbrex: {failure}");
            return ExitCode::from(COULD_NOT_RUN);
        }
    };
    if args.json {
        let document = document(&findings);
        emit(&format!(
            "{}\n",
            serde_json::to_string_pretty(&document).expect("a document of texts and numbers")
        ));
    } else {
        emit(&words(&findings));
    }
    ExitCode::from(match (findings.left, findings.repaired) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => DAMAGE_LEFT,
    })
}

fn check(args: &CheckArgs) -> Result<Findings, Failure> {
    let opened = match args.repair {
        true => Image::open(&args.dir),
        false => Image::open_read_only(&args.dir),
    };
    let image = match opened {
        Ok(image) => image,
        Err(ImageError::Damaged { path, what }) => {
            let mut findings = Findings::default();
            let path = path.display().to_string();
            findings.damage(&path, "description of the image", what);
            return Ok(findings);
        }
        Err(error) => return Err(refusal(error)),
    };
    let mut findings = Findings::default();
    check_disks(&image, &args.dir, &mut findings)?;
    // What is another disk or an older one must not be repaired by what the others say, nor they by it.
    let repair = args.repair && findings.left == 0;
    let shape = match shape_of(&image, repair) {
        Ok(shape) => shape,
        Err(_) if findings.left > 0 => return Ok(findings),
        Err(error) => return Err(error),
    };
    let checks = Checks { data: args.data, repair };
    let read = fsck::read(&shape, Some(image.description().uuid), checks).findings;
    findings.extend(read);
    Ok(findings)
}

fn document(findings: &Findings) -> Document<'_> {
    Document {
        schema: "imbrex.check/1",
        clean: findings.left == 0,
        repaired: findings.repaired,
        left: findings.left,
        findings: findings
            .kept
            .iter()
            .map(|finding| Entry {
                member: &finding.member,
                structure: finding.structure,
                problem: &finding.problem,
                repaired: finding.is_repaired,
            })
            .collect(),
        notes: &findings.notes,
    }
}

fn words(findings: &Findings) -> String {
    let mut text = String::new();
    for note in &findings.notes {
        text += &format!("{note}\n");
    }
    for finding in &findings.kept {
        let repaired = if finding.is_repaired { " (repaired)" } else { "" };
        text +=
            &format!("{}: {}: {}{repaired}\n", finding.member, finding.structure, finding.problem);
    }
    let kept = findings.kept.len() as u64;
    let all = findings.left + findings.repaired;
    if all > kept {
        text += &format!("and {} more\n", all - kept);
    }
    text += &match (findings.left, findings.repaired) {
        (0, 0) => "clean\n".to_owned(),
        (0, repaired) => format!("{repaired} repaired\n"),
        (left, 0) => format!("{left} damaged\n"),
        (left, repaired) => format!("{repaired} repaired, {left} still damaged\n"),
    };
    text
}
