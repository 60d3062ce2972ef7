//! When a drive-managed drive cleans its bands, as a drive file or a stack states it.

use super::translation::TranslationSettings;
use crate::quantity::{QuantityError, Span};
use imbrex_core::translation::{self, BlockingCleaning, IdleCleaning};
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

/// Whether an interrupted clean goes on where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleResume {
    /// It does.
    On,
    /// The band is begun anew: an ablation.
    Off,
}

/// Which band is cleaned next in idle time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleVictim {
    /// That of the oldest entry of the log.
    Fifo,
    /// The one with the most blocks in the log.
    MostDirty,
    /// The one with the lowest address.
    Lba,
}

/// How far a clean in idle time goes before the drive looks for requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdlePiece {
    /// Over the band, from track to track without losing a revolution.
    Band,
    /// Over a track.
    Track,
}

/// What idle cleaning does when a request arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleOnArrival {
    /// It stops at the next chunk, unless little is left of the band.
    FinishIfShort,
    /// It stops at once and does the chunks in flight anew.
    Abort,
    /// It stops at the next chunk.
    FinishChunk,
    /// It finishes the band.
    FinishBand,
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
        Some(IdleCleaning {
            victim: match self.idle_victim {
                Some(IdleVictim::MostDirty) => translation::Victim::MostDirty,
                Some(IdleVictim::Lba) => translation::Victim::Lba,
                Some(IdleVictim::Fifo) | None => translation::Victim::Fifo,
            },
            piece: match self.idle_piece {
                Some(IdlePiece::Track) => translation::IdlePiece::Track,
                Some(IdlePiece::Band) | None => translation::IdlePiece::Band,
            },
            on_arrival: match self.idle_on_arrival {
                Some(IdleOnArrival::Abort) => translation::OnArrival::Abort,
                Some(IdleOnArrival::FinishChunk) => translation::OnArrival::FinishChunk,
                Some(IdleOnArrival::FinishBand) => translation::OnArrival::FinishBand,
                Some(IdleOnArrival::FinishIfShort) | None => translation::OnArrival::FinishIfShort,
            },
            finish_within: self.idle_finish.map_or(IDLE_FINISH, |finish| finish.0),
            resumes: self.idle_resume != Some(IdleResume::Off),
            ..IdleCleaning::new(after.0, chunk_blocks, chunk_time)
        })
    }

    /// How bands are cleaned for want of room.
    pub fn blocking_cleaning(&self) -> BlockingCleaning {
        let low = self.blocking_low.unwrap_or(1.0);
        BlockingCleaning {
            low_permille: (low * 1000.0).round() as u32,
            slice: self.blocking_slice.map(|slice| slice.0),
        }
    }

    /// Refuses a share that is none, and a key about idle cleaning where nothing says whether there
    /// is any.
    pub fn check_cleaning(&self) -> Result<(), String> {
        if let Some(low) = self.blocking_low
            && !(0.0..=1.0).contains(&low)
        {
            return Err(format!(
                "`blocking_low` = {low} is no share of the persistent cache: accepted are 0 to 1"
            ));
        }
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
        assert_eq!(idle.piece, translation::IdlePiece::Band);
        let by_track = settings("idle_after = '1 s'\nidle_piece = 'track'").idle_cleaning(41_600);
        assert_eq!(by_track.unwrap().piece, translation::IdlePiece::Track);
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
        let error = settings("blocking_low = 1.5").check_cleaning().unwrap_err();
        assert!(error.contains("accepted are 0 to 1"), "{error}");
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
