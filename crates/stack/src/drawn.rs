//! A stack of which some keys are drawn: the table `[draw]` of a file for crash search.

use super::config::{ConfigError, StackConfig};
use super::setting::{Setting, check_taken};
use super::text::read_drawn;

/// A stack that differs from seed to seed in the keys that its table `[draw]` names.
#[derive(Clone, Debug)]
pub struct DrawnStack {
    file: String,
    config: StackConfig,
    draws: Vec<Draw>,
    settings: Vec<Setting>,
}

/// Keys that are drawn together.
#[derive(Clone, Debug)]
struct Draw {
    /// What a draw may come to, each a value for every key.
    choices: Vec<Vec<Setting>>,
}

impl DrawnStack {
    /// The stack of a text that came from `file`, with settings over what is drawn. Every value that may
    /// be drawn is tried.
    ///
    /// # Errors
    /// When the text, a setting, a key or a value of `[draw]` or the tree of nodes is wrong.
    pub fn from_text(
        file: &str,
        text: &str,
        settings: &[Setting],
    ) -> Result<DrawnStack, ConfigError> {
        let (config, draws) = read_drawn(file, text)?;
        let origin = format!("{file}: [draw]");
        let draws = draws.into_iter().map(|(keys, values)| Draw::read(&origin, &keys, values));
        let drawn = DrawnStack {
            file: file.to_string(),
            config,
            draws: draws.collect::<Result<_, _>>()?,
            settings: settings.to_vec(),
        };
        for draw in &drawn.draws {
            for choice in &draw.choices {
                let chosen = drawn.config.clone().with(file, choice)?;
                for setting in choice {
                    // A policy that is drawn brings its own keys.
                    check_taken(setting, [&drawn.config, &chosen].into_iter(), "no stack")?;
                }
            }
        }
        drawn.with(|_| 0)?;
        Ok(drawn)
    }

    /// The name of the stack.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The stack with what `below` draws: a number below the one that it is given.
    ///
    /// # Errors
    /// When values that are right one by one do not go together.
    pub fn draw(&self, mut below: impl FnMut(u64) -> u64) -> Result<StackConfig, ConfigError> {
        self.with(|draw| below(draw.choices.len() as u64) as usize)
    }

    /// The stack with one choice of each draw.
    fn with(&self, mut choice: impl FnMut(&Draw) -> usize) -> Result<StackConfig, ConfigError> {
        let drawn = self.draws.iter().flat_map(|draw| &draw.choices[choice(draw)]);
        let settings: Vec<Setting> = drawn.chain(&self.settings).cloned().collect();
        self.config.clone().with(&self.file, &settings)
    }
}

impl Draw {
    /// Reads an entry: one key and a list of values, or several with commas between and a list of lists.
    /// The value `{}` leaves a key as the file has it.
    fn read(origin: &str, keys: &str, values: toml::Value) -> Result<Draw, ConfigError> {
        let names: Vec<&str> = keys.split(',').map(str::trim).collect();
        let wrong = |found: &toml::Value| {
            let accepted = match names[..] {
                [_] => "a list of values".to_string(),
                _ => format!("a list of lists of {} values: one for each key", names.len()),
            };
            ConfigError::words(format!("{origin} \"{keys}\" = {found}; accepted: {accepted}"))
        };
        let choices = match &values {
            toml::Value::Array(choices) if !choices.is_empty() => choices,
            other => return Err(wrong(other)),
        };
        let choice = |choice: &toml::Value| {
            let values = match (&names[..], choice) {
                ([_], value) => vec![value.clone()],
                (several, toml::Value::Array(values)) if values.len() == several.len() => {
                    values.clone()
                }
                (_, other) => return Err(wrong(other)),
            };
            let is_stated = |value: &toml::Value| value.as_table().is_none_or(|it| !it.is_empty());
            let settings = names.iter().zip(values).filter(|(_, value)| is_stated(value));
            settings.map(|(key, value)| Setting::of(key, value, origin)).collect()
        };
        Ok(Draw { choices: choices.iter().map(choice).collect::<Result<_, _>>()? })
    }
}
