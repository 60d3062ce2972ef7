//! Pages in a real browser.

use std::path::Path;
use std::process::Command;

/// The page as a browser has it after its script, which must have ended without an error. `None`, after
/// saying so, where there is no browser.
pub fn opened(page: &Path) -> Option<String> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let Some(chromium) = places.into_iter().find(|path| Path::new(path).exists()) else {
        eprintln!("SKIPPED opening {}: chromium is not installed", page.display());
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(dom.contains("data-ready=\"yes\""), "the script did not finish: {log}");
    assert!(!dom.contains("data-error"), "the script failed: {log}");
    assert!(!log.contains("CONSOLE"), "{log}");
    Some(dom)
}
