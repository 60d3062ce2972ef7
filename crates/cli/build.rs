//! Tells the program which commit it was built from, so that reports can say it.

use std::path::Path;
use std::process::Command;

/// Names the commit where there is no repository, as in a source distribution.
const GIVEN: &str = "IMBREX_COMMIT";

fn main() {
    println!("cargo:rerun-if-env-changed={GIVEN}");
    let commit = std::env::var(GIVEN).ok().filter(|given| !given.is_empty()).or_else(commit_of_git);
    println!("cargo:rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo says the version");
    let of_commit = commit.as_deref().map_or("unknown commit".to_string(), |commit| {
        format!("commit {}", commit.chars().take(SHORT).collect::<String>())
    });
    println!("cargo:rustc-env=IMBREX_VERSION={version} ({of_commit})");
    if let Some(commit) = commit {
        println!("cargo:rustc-env=IMBREX_COMMIT={commit}");
    }
}

/// Letters of a commit where it stands beside a version.
const SHORT: usize = 12;

/// The commit of the repository that these sources are in. Sources that were unpacked inside another repository are
/// not in it.
fn commit_of_git() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // Asked when it runs: builds of several clones may share one target folder, and this program with it.
    let package = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let root = Path::new(&package).join("../..").canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // A commit moves HEAD or the branch it names; both are in the log of HEAD.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        let path = Path::new(&log);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}
