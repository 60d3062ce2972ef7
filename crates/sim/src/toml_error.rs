//! Reading TOML files with errors that name the file, the line and the nearest key.

use serde::de::DeserializeOwned;

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
        TomlError {
            file: file.to_string(),
            line,
            message,
        }
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
fn explain(message: &str) -> String {
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
            from_toml::<Tables>("a.toml", &text)
                .unwrap_err()
                .to_string()
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
    fn the_nearest_word_takes_the_fewest_edits() {
        assert_eq!(nearest("poer", ["lru", "pore", "pore-cf"]), Some("pore"));
        assert_eq!(
            nearest("smr_only", ["cmr-only", "smr-only"]),
            Some("smr-only")
        );
        assert_eq!(nearest("zebra", ["lru", "pore"]), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
