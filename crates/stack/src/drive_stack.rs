//! The stack that a drive is by itself.

use super::config::{ConfigError, StackConfig, ready_made};
use super::setting::Setting;
use imbrex_drives::toml_error::read_text;
use imbrex_drives::{Drive, DriveModel, LIBRARY};

/// The drives of the library, each a stack of its own name.
pub fn library_drives() -> impl Iterator<Item = (&'static str, Drive)> {
    LIBRARY.iter().filter_map(|(name, text)| {
        let drive = Drive::parse(name, text).ok()?;
        Some((*name, drive))
    })
}

/// A drive as it left the factory: with its own translation where it has one, and no cache.
pub(super) fn stack_of_drive(name: &str, model: &DriveModel) -> String {
    let quoted = toml::Value::from(name);
    let disk = |node: &str, what: &str| {
        format!(
            "name = {quoted}\ndescription = {}\n\n\
             [[node]]\nname = \"{node}\"\nkind = \"disk\"\ndrive = {quoted}\n",
            toml::Value::from(format!("{}, {what}", model.name))
        )
    };
    match model.translation {
        Some(_) => format!(
            "{}\n# What is not said here is as the drive file says.\n\
             [[node]]\nname = \"translation\"\nkind = \"persistent-cache\"\nbelow = \"smr\"\n",
            disk("smr", "as it left the factory: its own translation, no cache")
        ),
        None if model.zones.is_some() => format!(
            "{}\n# What is not said here is as the drive file says.\n\
             [[node]]\nname = \"zones\"\nkind = \"host-managed\"\nbelow = \"smr\"\n",
            disk("smr", "as it left the factory: zones that the host must write in sequence")
        ),
        None => disk("disk", "as it left the factory"),
    }
}

/// Whether a text is that of a drive and not of a stack: it says what medium there is, and no node.
pub(super) fn is_drive_file(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| table.contains_key("media") && !table.contains_key("node"))
}

/// The file of a drive, by name or path, and the text of the stack that it is by itself.
///
/// # Errors
/// When there is no such drive, or something is wrong with its file, which is told in its own lines.
pub(super) fn text_of_drive(name_or_path: &str) -> Result<(String, String), ConfigError> {
    let drive = Drive::open(name_or_path).map_err(|error| ConfigError::words(error.to_string()))?;
    let text = stack_of_drive(&drive.file, &drive.model);
    Ok((drive.file, text))
}

impl StackConfig {
    /// The stack that a drive is by itself: the name of a drive of the library, or the path of a
    /// drive file.
    ///
    /// # Errors
    /// When there is no such drive, or a setting is wrong.
    pub fn of_drive(name_or_path: &str, settings: &[Setting]) -> Result<StackConfig, ConfigError> {
        let (file, text) = text_of_drive(name_or_path)?;
        StackConfig::from_text(&file, &text, settings)
    }

    /// A ready-made stack or a stack file; any other name or path is that of a drive, which is a
    /// stack by itself.
    ///
    /// # Errors
    /// When there is neither, or a setting is wrong.
    pub fn of_drive_or_stack(
        name_or_path: &str,
        settings: &[Setting],
    ) -> Result<StackConfig, ConfigError> {
        // What cannot be read is no stack; opening it as a drive says why. What is no TOML is a stack
        // all the same when a line begins a node; loading it says where it is wrong.
        let text = read_text(name_or_path).unwrap_or_default();
        let has_nodes = match text.parse::<toml::Table>() {
            Ok(table) => table.contains_key("node"),
            Err(_) => text.lines().any(|line| line.trim() == "[[node]]"),
        };
        let is_stack = has_nodes || ready_made().any(|name| name == name_or_path);
        match is_stack {
            true => StackConfig::load(name_or_path, settings),
            false => StackConfig::of_drive(name_or_path, settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_file_that_is_wrong_is_not_taken_for_a_drive_file() {
        for wrong in ["entries = 18446744073709551616", "entries ="] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let text = format!("name = \"x\"\n[[node]]\nname = \"disk\"\n{wrong}\n");
            std::fs::write(&file, text).unwrap();
            let path = file.path().to_str().unwrap();
            let error = StackConfig::of_drive_or_stack(path, &[]).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(&format!("{path}:4: ")), "{error}");
        }
    }

    #[test]
    fn a_drive_is_the_same_stack_in_whatever_letter_case_it_is_written() {
        for drive in ["st5000as0011", "hc620-14tb"] {
            let expected = StackConfig::of_drive(drive, &[]).unwrap();
            assert_eq!(expected.name, drive);
            let written = drive.to_uppercase();
            for config in [
                StackConfig::of_drive(&written, &[]),
                StackConfig::of_drive_or_stack(&written, &[]),
                StackConfig::load(&written, &[]),
            ] {
                let table = |config: &StackConfig| toml::Table::try_from(config).unwrap();
                assert_eq!(table(&config.unwrap()), table(&expected), "{written}");
            }
        }
    }
}
