//! Reading TOML files with errors that name the file, the line and the nearest key.

use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes of a TOML file at most, and of any other file that a person writes by hand: more than a
/// hundred times the largest in the repository.
pub const TOML_BYTES_MAX: u64 = 1 << 20;
/// Names that an error lists of what a user has written; it counts the others.
pub const NAMES_LISTED_MAX: usize = 10;

/// A TOML file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct TomlError {
    /// The file as the user named it.
    pub file: String,
    /// Line of the fault, from 1.
    pub line: usize,
    /// What is wrong, and what is accepted.
    pub message: String,
}

/// Reads a file that a person has written, or a pipe. No more of it comes into memory than
/// [`TOML_BYTES_MAX`] and a byte.
///
/// # Errors
/// When it is longer, is not text, or the system refuses.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let mut text = String::new();
    let is_long = found.is_file() && found.len() > TOML_BYTES_MAX;
    if is_long || file.take(TOML_BYTES_MAX + 1).read_to_string(&mut text)? as u64 > TOML_BYTES_MAX {
        let found = match found.is_file() {
            true => format!("the file has {} bytes", found.len()),
            false => format!("there are more than {TOML_BYTES_MAX} bytes"),
        };
        let message = format!("{found}; accepted: at most {TOML_BYTES_MAX} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// Names for an error, the first [`NAMES_LISTED_MAX`] of them: `a, b, c and 4 more`.
pub fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let first: Vec<T> = names.by_ref().take(NAMES_LISTED_MAX).collect();
    let mut text = first.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.count() {
        0 => {}
        more => text.push_str(&format!(" and {more} more")),
    }
    text
}

/// Reads `text`, which came from `file`.
///
/// # Errors
/// When it is not TOML or does not fit `T`; an unknown key comes with the nearest known one.
pub fn from_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let first = 1 + text[..start.min(text.len())].matches('\n').count();
        let message = explain(error.message());
        let (line, message) = match find_culprit(text, first, error.message()) {
            Some((line, Some(key))) => (line, format!("{key}: {message}")),
            Some((line, None)) => (line, message),
            None => (first, message),
        };
        TomlError { file: file.to_string(), line, message }
    })
}

/// Of an error in one of several tables serde knows only where the first begins. The line is then
/// the one, if there is only one, with the word that the message quotes first; with it comes the
/// key when the word is the value.
fn find_culprit<'a>(
    text: &'a str,
    first: usize,
    message: &str,
) -> Option<(usize, Option<&'a str>)> {
    let word = message.split('`').nth(1)?;
    let is_header = text.lines().nth(first - 1)?.trim_start().starts_with('[');
    if !is_header || message.starts_with("missing field") {
        return None;
    }
    let lines = text.lines().enumerate().skip(first);
    let mut found = lines.filter_map(|(index, line)| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let value = value.split('#').next().unwrap_or(value).trim();
        let value = value.trim_matches(['"', '\'']);
        match (key == word, value == word) {
            (true, _) => Some((index + 1, None)),
            (false, true) => Some((index + 1, Some(key))),
            (false, false) => None,
        }
    });
    found.next().filter(|_| found.next().is_none())
}

/// Serde's sentence on an unknown field or variant, with the nearest known name in front of the
/// list of them all.
pub fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.as_slice() {
        [unknown, known @ ..]
            if message.starts_with("unknown field") || message.starts_with("unknown variant") =>
        {
            match nearest(unknown, known.iter().copied()) {
                Some(name) => format!("{message}; did you mean `{name}`?"),
                None => message.to_string(),
            }
        }
        _ => message.to_string(),
    }
}

/// The candidate that takes the fewest edits to get to from `word`; `None` when even that one is
/// no likely misspelling. The first of equals wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likely_max = word.chars().count().div_ceil(3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= likely_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and substitutions between two words (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Table {
        rotation_rpm: u32,
        heads: u32,
        capacity: Option<u32>,
    }

    #[test]
    fn a_misspelt_key_suggests_the_nearest() {
        let error = from_toml::<Table>("a.toml", "heads = 8\nrotation_rmp = 5980\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.toml:2: unknown field `rotation_rmp`, expected one of `rotation_rpm`, `heads`, \
             `capacity`; did you mean `rotation_rpm`?"
        );
    }

    #[derive(serde::Deserialize, Debug)]
    #[allow(dead_code)]
    struct Tables {
        node: Vec<Node>,
    }

    #[derive(serde::Deserialize, Debug)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Node {
        Disk(Table),
    }

    #[test]
    fn an_error_in_one_of_several_tables_names_its_line_and_key() {
        let first = "[[node]]\nkind = 'disk'\nrotation_rpm = 1\nheads = 2\n";
        let message = |second: &str| {
            let text = format!("{first}[[node]] # 1\nkind = 'disk'\n{second}");
            from_toml::<Tables>("a.toml", &text).unwrap_err().to_string()
        };
        assert_eq!(
            message("rotation_rpm = 1\nhaeds = 2\n"),
            "a.toml:8: unknown field `haeds`, expected one of `rotation_rpm`, `heads`, \
             `capacity`; did you mean `heads`?"
        );
        assert_eq!(
            message("rotation_rpm = 1\nheads = -5 # none\n"),
            "a.toml:8: heads: invalid value: integer `-5`, expected u32"
        );
        assert!(message("heads = 2\n").ends_with("missing field `rotation_rpm`"));
    }

    #[test]
    fn other_errors_keep_their_words_and_line() {
        let error = from_toml::<Table>("a.toml", "rotation_rpm = 1\nheads = 'x'\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.message.contains("expected u32"), "{error}");
        assert!(!error.message.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_list_of_names_has_an_end() {
        let names = |count: usize| (0..count).map(|n| format!("n{n}"));
        assert_eq!(listed(names(0)), "");
        assert_eq!(listed(names(3)), "n0, n1, n2");
        assert_eq!(listed(names(10)), "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9");
        let many = listed(names(50_000));
        assert_eq!(many, "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 49990 more");
    }

    #[test]
    fn a_text_is_as_long_as_accepted_or_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.toml");
        let file = File::create(&path).expect("a file");
        file.set_len(TOML_BYTES_MAX).expect("a length");
        assert_eq!(read_text(&path).expect("a text").len(), 1 << 20);
        file.set_len(TOML_BYTES_MAX + 1).expect("a length");
        let error = read_text(&path).expect_err("a refusal").to_string();
        let expected = "the file has 1048577 bytes; accepted: at most 1048576 bytes";
        assert_eq!(error, expected);
        let error = read_text("/dev/zero").expect_err("a refusal").to_string();
        let expected = "there are more than 1048576 bytes; accepted: at most 1048576 bytes";
        assert_eq!(error, expected);
    }

    #[test]
    fn the_nearest_word_takes_the_fewest_edits() {
        assert_eq!(nearest("poer", ["lru", "pore", "pore-cf"]), Some("pore"));
        assert_eq!(nearest("smr_only", ["cmr-only", "smr-only"]), Some("smr-only"));
        assert_eq!(nearest("zebra", ["lru", "pore"]), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
