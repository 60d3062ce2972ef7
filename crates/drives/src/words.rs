//! Values of keys that are words: the words are those that the core lists of a choice.

use crate::keys::Accepts;
use imbrex_core::words::Words;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A choice as TOML files and images have it: by its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Word<T>(pub T);

impl<T> Word<T> {
    /// What is stated, or what holds where nothing is.
    pub fn or(stated: Option<Word<T>>, usual: T) -> T {
        stated.map_or(usual, |word| word.0)
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.word())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Word<T>, D::Error> {
        let word = String::deserialize(from)?;
        let value = T::of_word(&word).ok_or_else(|| D::Error::unknown_variant(&word, T::WORDS))?;
        Ok(Word(value))
    }
}

/// What a key accepts whose words say enough: any of them.
pub struct AnyWord;

impl<T: Words> Accepts<Word<T>> for AnyWord {
    fn takes(&self, _: &Word<T>) -> bool {
        true
    }

    fn words(&self) -> String {
        T::WORDS.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Words> Accepts<Option<Word<T>>> for AnyWord {
    fn takes(&self, _: &Option<Word<T>>) -> bool {
        true
    }

    fn words(&self) -> String {
        Accepts::<Word<T>>::words(self)
    }
}

imbrex_core::words! {
    /// Whether something is done.
    pub enum OnOff {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_error::from_toml;
    use imbrex_core::translation::Victim;

    #[derive(Deserialize, Serialize, Debug)]
    struct Table {
        victim: Word<Victim>,
        resume: Word<OnOff>,
    }

    #[test]
    fn a_word_is_read_and_written() {
        let text = "victim = \"most-dirty\"\nresume = \"off\"\n";
        let table: Table = from_toml("a.toml", text).unwrap();
        assert_eq!((table.victim.0, table.resume.0), (Victim::MostDirty, OnOff::Off));
        assert_eq!(toml::to_string(&table).unwrap(), text);
    }

    #[test]
    fn another_word_is_refused_with_the_line_and_the_words() {
        for (text, expected) in [
            (
                "resume = 'on'\nvictim = 'fifi'",
                "a.toml:2: unknown variant `fifi`, expected one of `fifo`, `most-dirty`, `lba`, `cheapest`; \
                 did you mean `fifo`?",
            ),
            (
                "victim = 'fifo'\nresume = 'perhaps'",
                "a.toml:2: unknown variant `perhaps`, expected `on` or `off`",
            ),
        ] {
            assert_eq!(from_toml::<Table>("a.toml", text).unwrap_err().to_string(), expected);
        }
    }
}
