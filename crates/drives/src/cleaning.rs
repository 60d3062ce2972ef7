//! When a drive-managed drive cleans its bands, as a drive file or a stack states it.

use super::translation::TranslationSettings;
use crate::quantity::{QuantityError, Span};
use crate::words::{OnOff, Word};
use imbrex_core::translation::{BlockingCleaning, CleanTo, IdleCleaning};
use imbrex_core::units::{BlockCount, Duration};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Longest time on the medium for which a request waits when it interrupts a clean in idle time,
/// where nothing is said. *Estimated*: Idler (IEEE TC 2020, figure 2a) sees no increase of response
/// times at all.
const IDLE_CHUNK: Duration = Duration::from_ms(1);
/// Longest rest of a band that is finished though a request has arrived, where nothing is said:
/// with it the eight bands of Idler's table 1 are clean 10 ms after the trigger.
const IDLE_FINISH: Duration = Duration::from_ms(100);

/// After how long without a request bands are cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdleAfter {
    /// Never: only for want of room.
    Off,
    /// After this time.
    After(Span),
}

impl FromStr for IdleAfter {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<IdleAfter, QuantityError> {
        match text {
            "off" => Ok(IdleAfter::Off),
            _ => text.parse().map(IdleAfter::After).map_err(|_| {
                QuantityError::new(format!(
                    "`{text}` is no idle time: accepted are a time, as in `250 ms`, and `off`"
                ))
            }),
        }
    }
}

impl TryFrom<String> for IdleAfter {
    type Error = QuantityError;
    fn try_from(text: String) -> Result<IdleAfter, QuantityError> {
        text.parse()
    }
}

impl From<IdleAfter> for String {
    fn from(after: IdleAfter) -> String {
        match after {
            IdleAfter::Off => "off".to_string(),
            IdleAfter::After(span) => span.to_string(),
        }
    }
}

impl TranslationSettings {
    /// How bands are cleaned in idle time on a drive whose innermost track passes a block in
    /// `block_ns`; none when they are not.
    pub fn idle_cleaning(&self, block_ns: u64) -> Option<IdleCleaning> {
        let IdleAfter::After(after) = self.idle_after? else {
            return None;
        };
        // Two chunks are under way at a time.
        let chunk = self.idle_chunk.map_or(IDLE_CHUNK, |chunk| chunk.0);
        let chunk_time = Duration(chunk.0 / 2);
        let chunk_blocks = BlockCount((chunk_time.0 / block_ns.max(1)).max(1));
        let usual = IdleCleaning::new(after.0, chunk_blocks, chunk_time);
        Some(IdleCleaning {
            victim: Word::or(self.idle_victim, usual.victim),
            piece: Word::or(self.idle_piece, usual.piece),
            on_arrival: Word::or(self.idle_on_arrival, usual.on_arrival),
            finish_within: self.idle_finish.map_or(IDLE_FINISH, |finish| finish.0),
            resumes: self.idle_resume != Some(Word(OnOff::Off)),
            ..usual
        })
    }

    /// How bands are cleaned for want of room.
    pub fn blocking_cleaning(&self) -> BlockingCleaning {
        let low = self.blocking_low.unwrap_or(1.0);
        BlockingCleaning {
            low_permille: (low * 1000.0).round() as u32,
            slice: self.blocking_slice.map(|slice| slice.0),
            to: Word::or(self.clean_to, CleanTo::Home),
        }
    }

    /// Refuses a key about idle cleaning where nothing says whether there is any.
    pub fn check_cleaning(&self) -> Result<(), String> {
        let keys = [
            ("idle_chunk", self.idle_chunk.is_some()),
            ("idle_finish", self.idle_finish.is_some()),
            ("idle_resume", self.idle_resume.is_some()),
            ("idle_victim", self.idle_victim.is_some()),
            ("idle_piece", self.idle_piece.is_some()),
            ("idle_on_arrival", self.idle_on_arrival.is_some()),
        ];
        let stated = keys.into_iter().find(|(_, is_stated)| *is_stated);
        match stated {
            Some((key, _)) if self.idle_after.is_none() => Err(format!(
                "`{key}` says how bands are cleaned in idle time, and `idle_after` does not say \
                 when: accepted are a time, as in `250 ms`, and `off`"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::translation::IdlePiece;

    fn settings(text: &str) -> TranslationSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_trigger_alone_cleans_as_published() {
        // The innermost track of the ST5000AS0011: 241 blocks in 10.03 ms.
        let idle = settings("idle_after = '1 s'").idle_cleaning(41_600).unwrap();
        assert_eq!(idle.after, Duration::from_ms(1000));
        assert_eq!(idle.chunk_blocks, BlockCount(12));
        assert_eq!(idle.finish_within, Duration::from_ms(100));
        assert!(idle.resumes);
        assert_eq!(idle.piece, IdlePiece::Band);
        let by_track = settings("idle_after = '1 s'\nidle_piece = 'track'").idle_cleaning(41_600);
        assert_eq!(by_track.unwrap().piece, IdlePiece::Track);
        assert_eq!(settings("idle_after = 'off'").idle_cleaning(41_600), None);
        assert_eq!(settings("").idle_cleaning(41_600), None);
    }

    #[test]
    fn cleaning_for_want_of_room_makes_as_much_as_is_needed_unless_told() {
        let plain = settings("").blocking_cleaning();
        assert_eq!((plain.low_permille, plain.slice), (1000, None));
        let idler = settings("blocking_low = 0.9\nblocking_slice = '0.5 s'").blocking_cleaning();
        let half_a_second = Some(Duration::from_ms(500));
        assert_eq!((idler.low_permille, idler.slice), (900, half_a_second));
        let error = toml::from_str::<TranslationSettings>("blocking_low = 1.5").unwrap_err();
        assert!(error.message().contains("blocking_low = 1.5; accepted: 0 to 1"), "{error}");
    }

    #[test]
    fn a_key_without_the_trigger_is_named() {
        let error = settings("idle_resume = 'off'").check_cleaning().unwrap_err();
        assert!(error.starts_with("`idle_resume` says"), "{error}");
        let switched_off = settings("idle_resume = 'off'\nidle_after = 'off'");
        assert_eq!(switched_off.check_cleaning(), Ok(()));
        let error = "soon".parse::<IdleAfter>().unwrap_err().to_string();
        assert!(error.contains("`250 ms`, and `off`"), "{error}");
    }
}
