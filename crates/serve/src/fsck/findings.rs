//! What a check has found.

/// Findings that are kept in words; further ones are only counted.
const KEPT_MAX: usize = 1000;

/// One thing that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The member it is on.
    pub member: String,
    /// The structure, in the words of the format's pages.
    pub structure: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// True when it was put right.
    pub is_repaired: bool,
}

/// Everything that a check has to say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// Damage, the first so many.
    pub kept: Vec<Finding>,
    /// Damage in all that is left.
    pub left: u64,
    /// Damage in all that was repaired.
    pub repaired: u64,
    /// What a person may want to know though nothing is wrong with it.
    pub notes: Vec<String>,
}

impl Findings {
    /// Notes damage that stays.
    pub fn damage(&mut self, member: &str, structure: &'static str, problem: impl Into<String>) {
        self.left += 1;
        self.keep(member, structure, problem.into(), false);
    }

    /// Notes damage that was put right.
    pub fn repaired(&mut self, member: &str, structure: &'static str, problem: impl Into<String>) {
        self.repaired += 1;
        self.keep(member, structure, problem.into(), true);
    }

    /// Notes something that is in order.
    pub fn note(&mut self, member: &str, words: impl AsRef<str>) {
        if self.notes.len() < KEPT_MAX {
            self.notes.push(format!("{member}: {}", words.as_ref()));
        }
    }

    /// Adds what another part of the check has found.
    pub fn extend(&mut self, other: Findings) {
        self.left += other.left;
        self.repaired += other.repaired;
        let room = KEPT_MAX - self.kept.len();
        self.kept.extend(other.kept.into_iter().take(room));
        let room = KEPT_MAX - self.notes.len();
        self.notes.extend(other.notes.into_iter().take(room));
    }

    fn keep(&mut self, member: &str, structure: &'static str, problem: String, is_repaired: bool) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(Finding { member: member.to_owned(), structure, problem, is_repaired });
        }
    }
}
