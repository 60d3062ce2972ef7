//! What the journal of an array says of a member.

use super::members::State;
use crate::durability::block::{Field, field};
use crate::layer::Port;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// A member is, or has, something else from now on.
pub const RECORD_MEMBER: u8 = 1;

/// The fields of a member in a record and in a checkpoint.
pub const MEMBER_FIELDS: [Field; 5] = [
    field("member_column", 0, 1),
    field("member_port", 1, 1),
    field("member_number", 2, 2),
    field("member_state", 4, 1),
    field("member_rows", 5, 8),
];

/// Bytes of a member.
pub const MEMBER_BYTES: usize = 13;

/// What is recorded of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct MemberRecord {
    /// Which column it is.
    pub column: u8,
    /// The port behind which it is.
    pub port: Port,
    /// The number of the disk there, in the set.
    pub number: u16,
    /// What it has.
    pub state: State,
    /// Of one that is out: it was being rebuilt, so it has not even what it has not missed.
    pub is_partial: bool,
}

impl MemberRecord {
    /// Appends its bytes.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        let (state, rows) = match self.state {
            State::In => (0, 0),
            State::Out => (1, u64::from(self.is_partial)),
            State::Blank => (2, 0),
            State::Rebuilding(rows) => (3, rows),
            State::Returning(rows) => (4, rows),
        };
        bytes.extend([self.column, self.port.0]);
        bytes.extend(self.number.to_le_bytes());
        bytes.push(state);
        bytes.extend(rows.to_le_bytes());
    }

    /// Takes one from the start of some bytes, and what is behind it.
    pub fn take(bytes: &[u8]) -> Option<(MemberRecord, &[u8])> {
        let (own, rest) = bytes.split_at_checked(MEMBER_BYTES)?;
        let rows = u64::from_le_bytes(own[5..].try_into().ok()?);
        let state = match own[4] {
            0 => State::In,
            1 => State::Out,
            2 => State::Blank,
            3 => State::Rebuilding(rows),
            4 => State::Returning(rows),
            _ => return None,
        };
        let number = u16::from_le_bytes([own[2], own[3]]);
        let is_partial = state == State::Out && rows > 0;
        let port = Port(own[1]);
        Some((MemberRecord { column: own[0], port, number, state, is_partial }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_comes_back_and_nonsense_does_not() {
        for state in
            [State::In, State::Out, State::Blank, State::Rebuilding(7), State::Returning(9)]
        {
            let is_partial = state == State::Out;
            let record = MemberRecord { column: 3, port: Port(4), number: 600, state, is_partial };
            let mut bytes = Vec::new();
            record.put(&mut bytes);
            assert_eq!(bytes.len(), MEMBER_BYTES);
            bytes.push(1);
            assert_eq!(MemberRecord::take(&bytes), Some((record, &[1][..])));
            bytes[4] = 5;
            assert_eq!(MemberRecord::take(&bytes), None);
        }
    }
}
