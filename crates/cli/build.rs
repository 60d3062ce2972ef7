//! Tells the program which commit it was built from, so that reports can say it.

use std::process::Command;

fn main() {
    // A commit moves HEAD or the branch it names; both are in the log of HEAD.
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        let path = std::path::Path::new(&log);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo says the version");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let of_commit =
        commit.map_or("unknown commit".to_string(), |commit| format!("commit {commit}"));
    println!("cargo:rustc-env=IMBREX_VERSION={version} ({of_commit})");
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=IMBREX_COMMIT={commit}");
    }
}
