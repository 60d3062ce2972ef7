//! Why a measured number does not agree with the published one beside it, as far as that is known.

use serde::{Deserialize, Serialize};

/// Why numbers do not agree. It stands in the experiment file and is told of rows that disagree alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The loads of the paper are not published: what is run has their counts, and another order of requests.
    LoadNotAvailable,
    /// The paper does not say how something was set up that decides the number.
    SetUpNotStated,
    /// It is run at a smaller size than that of the paper, and the size decides the number.
    SmallerScale,
    /// The model leaves out what the paper's own hardware had.
    ModelDiffers,
    /// The paper measured something that overlapping tracks do not allow, such as a prototype on a conventional disk.
    ShingledPhysics,
    /// Numbers of the paper contradict each other, or cannot be.
    PaperArithmetic,
    /// It was tried as the paper states it, and does not hold.
    DoesNotHold,
    /// It was looked for and not found.
    Unknown,
    /// The experiment file gives none. It is never written there.
    #[serde(skip_deserializing)]
    Unexplained,
}

/// How many numbers disagree for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonTally {
    /// The reason.
    pub reason: Reason,
    /// Numbers that disagree for it.
    pub rows: usize,
    /// Whether what is stated is refuted, rather than not tried.
    pub refuted: bool,
}

impl Reason {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Reason; 9] = [
        Reason::ShingledPhysics,
        Reason::PaperArithmetic,
        Reason::DoesNotHold,
        Reason::LoadNotAvailable,
        Reason::SetUpNotStated,
        Reason::SmallerScale,
        Reason::ModelDiffers,
        Reason::Unknown,
        Reason::Unexplained,
    ];

    /// As it stands in an experiment file.
    pub fn word(self) -> &'static str {
        match self {
            Reason::LoadNotAvailable => "load-not-available",
            Reason::SetUpNotStated => "set-up-not-stated",
            Reason::SmallerScale => "smaller-scale",
            Reason::ModelDiffers => "model-differs",
            Reason::ShingledPhysics => "shingled-physics",
            Reason::PaperArithmetic => "paper-arithmetic",
            Reason::DoesNotHold => "does-not-hold",
            Reason::Unknown => "unknown",
            Reason::Unexplained => "unexplained",
        }
    }

    /// The same in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Reason::LoadNotAvailable => "the paper's loads are not published",
            Reason::SetUpNotStated => "the paper does not state a setting that decides it",
            Reason::SmallerScale => "it was run smaller than in the paper",
            Reason::ModelDiffers => "the model leaves out what the paper's hardware had",
            Reason::ShingledPhysics => "overlapping tracks do not allow what the paper measured",
            Reason::PaperArithmetic => "the paper's numbers contradict each other or cannot be",
            Reason::DoesNotHold => "it was tried as stated and does not hold",
            Reason::Unknown => "looked for and not found",
            Reason::Unexplained => "nobody has given a reason",
        }
    }

    /// Whether what is stated is refuted, rather than not tried as the paper did.
    pub fn is_refutation(self) -> bool {
        matches!(self, Reason::ShingledPhysics | Reason::PaperArithmetic | Reason::DoesNotHold)
    }
}

impl ReasonTally {
    /// Counts reasons; those of no row are left out.
    pub fn of(reasons: impl Iterator<Item = Reason> + Clone) -> Vec<ReasonTally> {
        let tally = |reason: Reason| ReasonTally {
            reason,
            rows: reasons.clone().filter(|other| *other == reason).count(),
            refuted: reason.is_refutation(),
        };
        Reason::ALL.into_iter().map(tally).filter(|tally| tally.rows > 0).collect()
    }

    /// One line for each.
    pub fn lines(tallies: &[ReasonTally]) -> String {
        let line = |it: &ReasonTally| {
            format!("{:>5} {}: {}\n", it.rows, it.reason.word(), it.reason.words())
        };
        tallies.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_files_and_unexplained_is_in_none() {
        for reason in Reason::ALL {
            let word = serde_json::to_value(reason).unwrap();
            assert_eq!(word, reason.word());
            let read = serde_json::from_value::<Reason>(word).ok();
            assert_eq!(read, Some(reason).filter(|it| *it != Reason::Unexplained));
        }
    }

    #[test]
    fn refutations_are_counted_first_and_absent_reasons_left_out() {
        let reasons = [Reason::Unknown, Reason::DoesNotHold, Reason::Unknown];
        assert_eq!(
            ReasonTally::lines(&ReasonTally::of(reasons.into_iter())),
            "    1 does-not-hold: it was tried as stated and does not hold\n    2 unknown: looked for and \
             not found\n"
        );
    }
}
