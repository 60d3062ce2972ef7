//! Rules about the repository itself: what a reviewer would otherwise have to repeat.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A longer source file holds more than one idea.
const SOURCE_LINES_MAX: usize = 800;
/// Large enough for a compressed window of a recording, too small for a whole one.
const FILE_BYTES_MAX: u64 = 2_000_000;
/// Each public trait of the core is a promise to every layer; a further one replaces an old one.
const CORE_PUBLIC_TRAITS_MAX: usize = 10;
/// What a build or a run leaves behind, not part of the repository.
const SKIPPED_DIRECTORIES: [&str; 5] =
    ["target", ".git", "results", "__pycache__", "proptest-regressions"];
/// Pages a reader starts from; a `README.md` of any folder is one as well.
const FIRST_PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

#[test]
fn source_files_stay_short() {
    let mut long = Vec::new();
    for path in files().filter(|path| has_extension(path, &["rs", "py"])) {
        let lines = text(&path).lines().count();
        if lines > SOURCE_LINES_MAX {
            long.push(format!("{}: {lines} lines", relative(&path)));
        }
    }
    complain(long, &format!("split these files: one idea each, at most {SOURCE_LINES_MAX} lines"));
}

#[test]
fn no_machine_paths() {
    // Built from pieces, so that this file does not contain what it looks for.
    let banned: Vec<String> =
        ["root", "work", "home"].iter().map(|name| ["/", name, "/"].concat()).collect();
    let mut found = Vec::new();
    for path in files() {
        let Ok(content) = fs::read_to_string(&path) else {
            continue;
        };
        for (index, line) in content.lines().enumerate() {
            for word in &banned {
                if line.match_indices(word.as_str()).any(|(at, _)| starts_a_path(line, at)) {
                    found.push(format!("{}:{}: {word}", relative(&path), index + 1));
                }
            }
        }
    }
    complain(found, "a path of somebody's machine: use one relative to the repository");
}

#[test]
fn dependencies_come_from_the_public_registry() {
    let lock = text(&root().join("Cargo.lock"));
    let other: Vec<String> = lock
        .lines()
        .filter(|line| line.starts_with("source = "))
        .filter(|line| {
            !line.contains(concat!("\"registry+https://github.com/rust-lang/crates", ".io-index\""))
        })
        .map(str::to_owned)
        .collect();
    complain(other, "Cargo.lock names a source that others cannot reach");
    let override_file = root().join(".cargo/config.toml");
    if let Ok(content) = fs::read_to_string(override_file) {
        assert!(
            !content.contains("[source"),
            "a registry override belongs in the user's own configuration"
        );
    }
}

#[test]
fn no_leftover_files() {
    let leftover = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        has_extension(path, &["bak", "orig", "rej", "swp", "tmp", "pyc"])
            || name.ends_with('~')
            || stem.ends_with("_old")
            || stem.ends_with("_backup")
    };
    let found = files().filter(leftover).map(|path| relative(&path)).collect();
    complain(found, "delete these files: git remembers them");
}

#[test]
fn no_large_files() {
    let mut large = Vec::new();
    for path in files() {
        let bytes = fs::metadata(&path).expect("a file just listed").len();
        if bytes > FILE_BYTES_MAX {
            large.push(format!("{}: {bytes} bytes", relative(&path)));
        }
    }
    complain(large, "files over 2 MB do not belong into the repository");
}

#[test]
fn core_has_few_public_traits() {
    let mut traits = Vec::new();
    for path in core_sources() {
        for line in text(&path).lines() {
            let line = line.trim_start();
            if let Some(rest) =
                line.strip_prefix("pub trait ").or(line.strip_prefix("pub unsafe trait "))
            {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                traits.push(format!("{} ({})", name.unwrap_or_default(), relative(&path)));
            }
        }
    }
    assert!(
        traits.len() <= CORE_PUBLIC_TRAITS_MAX,
        "imbrex-core has {} public traits, the budget is {CORE_PUBLIC_TRAITS_MAX}:\n  {}",
        traits.len(),
        traits.join("\n  ")
    );
}

#[test]
fn core_has_no_hash_map_of_std() {
    let mut found = Vec::new();
    for path in core_sources() {
        for (index, line) in text(&path).lines().enumerate() {
            if line.contains("std::collections") && line.contains("Hash") {
                found.push(format!("{}:{}: {}", relative(&path), index + 1, line.trim()));
            }
        }
    }
    complain(found, "the order of a std hash map differs from run to run");
}

#[test]
fn every_page_is_linked_and_every_link_leads_somewhere() {
    let pages: BTreeMap<PathBuf, Vec<PathBuf>> = files()
        .filter(|path| has_extension(path, &["md"]))
        .map(|path| {
            let links = links(&path);
            (path, links)
        })
        .collect();

    let mut broken = Vec::new();
    for (page, links) in &pages {
        for link in links.iter().filter(|link| !link.exists()) {
            broken.push(format!("{} -> {}", relative(page), relative(link)));
        }
    }
    complain(broken, "these links lead nowhere");

    let is_first = |page: &Path| {
        FIRST_PAGES.iter().any(|name| page == root().join(name)) || page.ends_with("README.md")
    };
    let mut to_visit: Vec<&PathBuf> = pages.keys().filter(|page| is_first(page)).collect();
    let mut reached = BTreeSet::new();
    while let Some(page) = to_visit.pop() {
        if reached.insert(page) {
            to_visit.extend(
                pages[page]
                    .iter()
                    .filter_map(|link| pages.get_key_value(link))
                    .map(|(page, _)| page),
            );
        }
    }
    let docs = root().join("docs");
    let unreached = pages
        .keys()
        .filter(|page| page.starts_with(&docs) && !reached.contains(page))
        .map(|page| relative(page));
    complain(unreached.collect(), "no page links to these: a reader will not find them");
}

/// Fails with every finding at once, so that one run shows all there is to do.
fn complain(findings: Vec<String>, rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository root")
}

/// Every file of the repository, in a fixed order.
fn files() -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a readable directory") {
            let entry = entry.expect("a readable directory entry");
            let kind = entry.file_type().expect("the type of a directory entry");
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
                directories.push(entry.path());
            } else if kind.is_file() && name != ".git" {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found.into_iter()
}

fn core_sources() -> impl Iterator<Item = PathBuf> {
    let core = root().join("crates/core");
    files().filter(move |path| path.starts_with(&core) && has_extension(path, &["rs"]))
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", relative(path)))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Whether the slash at `at` is where a path begins, not the middle of one such as `target/workspace`.
fn starts_a_path(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/~}>)*".contains(c))
}

/// The targets of the relative links of a page, without their anchors, as paths without `..`.
fn links(page: &Path) -> Vec<PathBuf> {
    let content = text(page);
    let directory = page.parent().expect("a page lies in a directory");
    let mut targets = Vec::new();
    for (at, _) in content.match_indices("](") {
        let rest = &content[at + 2..];
        let Some(end) = rest.find([')', ' ', '\n']) else {
            continue;
        };
        let target = rest[..end].split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
            targets.push(normalise(&directory.join(target)));
        }
    }
    targets
}

fn normalise(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}
