//! What is said of a run in which nothing was cleaned: its figures leave the dearest work out.

use super::report::Report;
use crate::format::percent;
use serde::{Deserialize, Serialize};

/// The host wrote to a stack with bands, and no band was rewritten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoCleaning {
    /// Share of the log in use at the end (slots or map entries, whichever is nearer its limit).
    pub log_fill: f64,
    /// True when more was appended than the log holds: it went round, and every block in it was
    /// superseded before its turn to be merged came.
    pub log_went_round: bool,
    /// An option of the same command with which the same requests would have bands cleaned, such as
    /// `--drive-scale 64`; null where none is known.
    pub would_show: Option<String>,
}

impl NoCleaning {
    /// The sentence, without the system it is about.
    pub fn sentence(&self) -> String {
        let why = if self.log_fill == 0.0 {
            "no write went to the log".to_string()
        } else if self.log_went_round {
            "all in the log was superseded before its turn came".to_string()
        } else {
            let used = match percent(Some(self.log_fill)).as_str() {
                "0.0" => "less than 0.1".to_string(),
                used => used.to_string(),
            };
            format!("the log never filled ({used} % in use at the end)")
        };
        let how = self
            .would_show
            .as_ref()
            .map_or(String::new(), |option| format!("; {option} would show it"));
        format!("{why}: these figures exclude cleaning{how}")
    }
}

impl Report {
    /// A line for each thing to be said of runs in which nothing was cleaned, with the systems it
    /// is true of.
    pub(super) fn no_cleaning_lines(&self) -> Vec<String> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for run in &self.runs {
            let Some(no_cleaning) = &run.log.no_cleaning else {
                continue;
            };
            let sentence = no_cleaning.sentence();
            match lines.iter_mut().find(|(_, other)| *other == sentence) {
                Some((systems, _)) => systems.push_str(&format!(", {}", run.label())),
                None => lines.push((run.label(), sentence)),
            }
        }
        let lines = lines.into_iter();
        lines.map(|(systems, sentence)| format!("{systems}: {sentence}.")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_why_nothing_was_cleaned_and_what_would_show_it() {
        let mut no_cleaning = NoCleaning {
            log_fill: 0.034,
            log_went_round: false,
            would_show: Some("--drive-scale 64".into()),
        };
        assert_eq!(
            no_cleaning.sentence(),
            "the log never filled (3.4 % in use at the end): these figures exclude cleaning; \
             --drive-scale 64 would show it"
        );
        no_cleaning.log_fill = 1e-5;
        assert!(no_cleaning.sentence().contains("(less than 0.1 % in use"));
        no_cleaning.log_went_round = true;
        no_cleaning.would_show = None;
        assert_eq!(
            no_cleaning.sentence(),
            "all in the log was superseded before its turn came: these figures exclude cleaning"
        );
        no_cleaning.log_fill = 0.0;
        assert_eq!(
            no_cleaning.sentence(),
            "no write went to the log: these figures exclude cleaning"
        );
    }
}
