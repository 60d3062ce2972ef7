//! What a counter or a gauge counts, and how those of several nodes add up.

/// A quantity as reports know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declared {
    /// What reports call it.
    pub name: &'static str,
    /// What its value counts.
    pub unit: Unit,
    /// What its value is.
    pub kind: Kind,
    /// How the values of several nodes add up.
    pub together: Together,
    /// What it is, in a sentence or two.
    pub sentence: &'static str,
}

/// What a value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Times, operations, or whatever the name says.
    Number,
    /// Blocks: of 4 KiB, or of the node's own size.
    Blocks,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// Millionths of a whole.
    Millionths,
}

impl Unit {
    /// The word that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Number => "number",
            Unit::Blocks => "blocks",
            Unit::Bytes => "bytes",
            Unit::Ns => "ns",
            Unit::Millionths => "millionths",
        }
    }
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The sum of all that was counted: it only grows.
    Count,
    /// How much there is now.
    Present,
    /// The most that there was, or may have been.
    Greatest,
    /// Which part of a whole there is now.
    Share,
}

impl Kind {
    /// The words that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Count => "count",
            Kind::Present => "present value",
            Kind::Greatest => "greatest",
            Kind::Share => "share",
        }
    }
}

/// How the values of several nodes add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// Work or state: the sum.
    Sum,
    /// What requests found: the sum of the nodes that are below no other one of them. What reaches
    /// the nodes below is what those above did not have.
    Topmost,
    /// The greatest of them.
    Greatest,
    /// Not at all: nothing can be said of several nodes.
    Apart,
}

impl Together {
    /// The words that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Together::Sum => "sum",
            Together::Topmost => "sum of the topmost",
            Together::Greatest => "greatest",
            Together::Apart => "none",
        }
    }

    /// Adds the value of one more node.
    pub(super) fn add(self, all: &mut u64, value: u64, is_topmost: bool) {
        match self {
            Together::Sum => *all += value,
            Together::Topmost if is_topmost => *all += value,
            Together::Greatest => *all = value.max(*all),
            Together::Topmost | Together::Apart => {}
        }
    }
}
