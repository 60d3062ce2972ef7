//! How a layer comes up and goes down: what it is told, and why it may refuse.

use crate::error::IoError;
use crate::saved::SavedValue;
use alloc::string::String;
use core::fmt;

/// Names a set of members that were formatted together, or one member of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, SavedValue)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The name of member number `member` of this set. For the last number, which no member has, that of the
    /// set.
    #[must_use]
    pub fn member(self, member: u16) -> Uuid {
        let mut bytes = self.0;
        let low = u16::from_le_bytes([bytes[0], bytes[1]]) ^ member.wrapping_add(1);
        bytes[..2].copy_from_slice(&low.to_le_bytes());
        Uuid(bytes)
    }

    /// The number of this member in a set; `None` of a member of another set.
    pub fn number_in(self, set: Uuid) -> Option<u16> {
        let low = |uuid: Uuid| u16::from_le_bytes([uuid.0[0], uuid.0[1]]);
        let number = (low(self) ^ low(set)).checked_sub(1);
        number.filter(|_| self.0[2..] == set.0[2..])
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// How the layers of a stack are to come up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Whatever is on the disks is forgotten, and an empty device is written over it.
    Format(Uuid),
    /// What was acknowledged as durable is brought back. With a name, members of another set are
    /// refused.
    Recover(Option<Uuid>),
}

/// Why a layer cannot come up. Nothing was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The member holds no structure of ours.
    NotFormatted,
    /// The member was formatted with another set.
    Foreign {
        /// The set it says it belongs to.
        found: Uuid,
        /// The set that was asked for.
        expected: Uuid,
    },
    /// The member is another one of the same set: members have changed places.
    OtherMember {
        /// The member it says it is.
        found: Uuid,
        /// The member that belongs here.
        expected: Uuid,
    },
    /// The member was written by another format.
    Version {
        /// What it says.
        found: u32,
        /// The newest that can be read.
        supported: u32,
    },
    /// The member uses features that this build does not know; the bits say which.
    Features(u32),
    /// The layer has other settings than the one that wrote the member.
    Settings {
        /// The setting.
        name: &'static str,
        /// What the member says.
        found: u64,
        /// What the layer has now.
        expected: u64,
    },
    /// A structure fails its checks, and no good copy of it is left.
    Damaged {
        /// Which structure.
        structure: &'static str,
        /// Where, and what is wrong with it.
        detail: String,
    },
    /// The member is an older copy of itself than another member remembers.
    OlderCopy {
        /// Which member of the layer.
        member: &'static str,
        /// How far the member has come.
        found: u64,
        /// How far it has been.
        expected: u64,
    },
    /// The member could not be read or written.
    Io(IoError),
}

impl OpenError {
    /// A damaged structure, with what is wrong with it.
    pub fn damaged(structure: &'static str, detail: impl Into<String>) -> OpenError {
        OpenError::Damaged { structure, detail: detail.into() }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NotFormatted => f.write_str("it is not formatted: no superblock was found"),
            OpenError::Foreign { found, expected } => {
                write!(f, "it belongs to image {found}, not to image {expected}")
            }
            OpenError::OtherMember { found, expected } => {
                write!(f, "it is member {found} of its image, and member {expected} belongs here")
            }
            OpenError::Version { found, supported } => write!(
                f,
                "it has format version {found}; this build reads up to version {supported}"
            ),
            OpenError::Features(bits) => {
                write!(f, "it needs features that this build does not know: {bits:#x}")
            }
            OpenError::Settings { name, found, expected } => {
                write!(f, "it was formatted with {name} = {found}, and now {name} is {expected}")
            }
            OpenError::Damaged { structure, detail } => {
                write!(f, "its {structure} is damaged: {detail}")
            }
            OpenError::OlderCopy { member, found, expected } => write!(
                f,
                "the {member} is an older copy of itself: it has reached generation {found}, and \
                 another member remembers generation {expected}"
            ),
            OpenError::Io(error) => write!(f, "{error}"),
        }
    }
}
