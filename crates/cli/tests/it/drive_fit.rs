//! `imbrex drive fit` as docs/fit.md says to use it: the jobs of `experiments/fit`, run by `imbrex drive fio`
//! on a drive of the library, and what is fitted to the logs they leave.

use std::path::Path;
use std::process::Command;

const DRIVE: &str = "st5000as0011";
const JOBS: [&str; 3] = ["seek", "small-writes", "large-writes"];

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn imbrex(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    assert_eq!(error, "", "{args:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The value of a key, first of the lines of a TOML file.
fn value(text: &str, key: &str) -> String {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut found = lines.filter(|(name, _)| name.trim() == key);
    let (_, value) = found.next().unwrap_or_else(|| panic!("no {key}"));
    let value = value.split('#').next().unwrap_or_default();
    value.trim().trim_matches('"').to_string()
}

fn number(text: &str) -> f64 {
    let digits = text.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    digits.unwrap_or_default().parse().expect("a number")
}

#[test]
fn the_jobs_of_the_page_give_back_the_drive_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = std::fs::read_to_string(repository().join("docs/fit.md")).expect("the page");
    for name in JOBS {
        let job = repository().join(format!("experiments/fit/{name}.fio"));
        let job = job.to_string_lossy();
        imbrex(folder.path(), &["drive", "fio", DRIVE, &job, "--quiet"]);
    }
    // The command of the page, word by word.
    let command = page.lines().find(|line| line.starts_with("imbrex drive fit "));
    let words: Vec<&str> = command.expect("a command").split_whitespace().collect();
    let fitted = imbrex(folder.path(), &words[1..]);
    let truth = repository().join(format!("drives/{DRIVE}.toml"));
    let truth = std::fs::read_to_string(truth).expect("a drive file");

    let near = |what: &str, found: f64, truth: f64| {
        println!("{what}: fitted {found}, in the file {truth}");
        assert!((found / truth - 1.0).abs() <= 0.1, "{what}: {found} for {truth}");
    };
    let same = |key: &str| (number(&value(&fitted, key)), number(&value(&truth, key)));
    let (found, of_file) = same("rpm");
    near("rpm", found, of_file);
    let (found, of_file) = same("entries");
    near("entries", found, of_file);
    let found = number(&value(&fitted, "persistent_cache"));
    let of_file = value(&truth, "persistent_cache");
    assert!(of_file.ends_with(" GB"), "{of_file}");
    near("persistent cache", found, number(&of_file) * 1e9);
    let bands = value(&truth, "bands");
    let bounds: Vec<f64> = bands
        .strip_prefix("uniform:")
        .expect("bands of many sizes")
        .split("..")
        .map(number)
        .collect();
    let mean = (bounds[0] + bounds[1]) / 2.0 * f64::from(1 << 20);
    let found = value(&fitted, "bands");
    near("bands", number(found.strip_prefix("fixed:").expect("one size")), mean);
    let average = fitted.split("average ").nth(1).expect("an average");
    near("average seek", number(average), number(&value(&truth, "average")));
    let last = fitted.split("[1000, ").nth(1).expect("a full stroke");
    near("full stroke", number(last), number(&value(&truth, "full_stroke")));
}
