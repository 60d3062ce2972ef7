//! The strings of a column as numbers: a column of operations has few different ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::errors::Result;

use super::pages::wrong;

/// Different strings of a column at most, and bytes that are kept of one.
const WORDS_MAX: usize = 256;
const WORD_BYTES_MAX: usize = 80;

/// The different strings of a column, in order of appearance. Copies are the same list: who takes pages out of the file adds to it,
/// who reads the column looks into it.
#[derive(Debug, Clone, Default)]
pub(super) struct Words(Arc<Mutex<Vec<Vec<u8>>>>);

impl Words {
    /// The strings from a number on.
    pub(super) fn from(&self, number: usize) -> Vec<Vec<u8>> {
        self.list().get(number..).unwrap_or_default().to_vec()
    }

    fn list(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the numbers of up to `most` strings, 4 bytes each, and says how many they are. The strings stand one behind the
    /// other, each behind its length.
    ///
    /// # Errors
    /// A string is cut, or there are too many different ones.
    pub(super) fn number(&self, mut strings: &[u8], most: u32, to: &mut Vec<u8>) -> Result<u32> {
        let mut list = self.list();
        let mut count = 0;
        while count < most && !strings.is_empty() {
            let cut = || wrong("a page is cut inside a string".to_owned());
            let (length, rest) = strings.split_first_chunk().ok_or_else(cut)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (word, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
            let word = &word[..word.len().min(WORD_BYTES_MAX)];
            let number = match list.iter().position(|known| known == word) {
                Some(number) => number,
                None if list.len() == WORDS_MAX => {
                    return Err(wrong(format!(
                        "more than {WORDS_MAX} different strings; accepted: a column of operations"
                    )));
                }
                None => {
                    list.push(word.to_vec());
                    list.len() - 1
                }
            };
            to.extend_from_slice(&(number as u32).to_le_bytes());
            (strings, count) = (rest, count + 1);
        }
        Ok(count)
    }
}
