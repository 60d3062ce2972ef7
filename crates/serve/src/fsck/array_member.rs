//! The members of a durable array, as its journal has them.

use super::words::Words;

/// What a member has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// All of its rows.
    All,
    /// Nothing: it is out. One that was being rebuilt gets all rows when it is back, others what they have missed.
    Out {
        /// It was being rebuilt.
        is_partial: bool,
    },
    /// Nothing: it is a new disk.
    Blank,
    /// The rows before this one.
    Rebuilt(u64),
    /// Those that nobody has written while it was away, and all before this one.
    Returned(u64),
}

/// A member as the journal has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayMember {
    /// The port behind which it is.
    pub port: usize,
    /// The number of its disk in the set.
    pub number: u16,
    /// What it has.
    pub has: Has,
}

/// What members of an array there can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct MembersOf {
    /// How many there are.
    pub columns: usize,
    /// Nodes that they can be behind.
    pub ports: usize,
    /// Rows that one has at most.
    pub rows: u64,
}

impl ArrayMember {
    /// True of one that is out.
    pub(super) fn is_out(&self) -> bool {
        matches!(self.has, Has::Out { .. })
    }
}

impl MembersOf {
    /// The members at the start of a checkpoint, and what is behind them.
    pub fn all<'a>(&self, bytes: &'a [u8]) -> Result<(Vec<ArrayMember>, Words<'a>), String> {
        let short = || "it ends within what it lists".to_owned();
        let (found, mut rest) = bytes.split_first().ok_or_else(short)?;
        let columns = self.columns;
        if usize::from(*found) != columns {
            return Err(format!("it lists {found} members, and the array has {columns}"));
        }
        let mut members = Vec::new();
        for column in 0..columns {
            let (own, behind) = rest.split_at_checked(MEMBER_BYTES).ok_or_else(short)?;
            let (of, member) = self.one(own)?;
            if of != column {
                return Err(format!("it lists member {of} in the place of member {column}"));
            }
            members.push(member);
            rest = behind;
        }
        Ok((members, Words::new(rest)))
    }

    /// A member, and its column.
    fn one(&self, bytes: &[u8]) -> Result<(usize, ArrayMember), String> {
        let [column, port, low, high, state, rows @ ..] = bytes else {
            return Err("a member has fewer bytes than it must".to_owned());
        };
        let rows = <[u8; 8]>::try_from(rows).map_err(|_| "a member has other bytes")?;
        let rows = u64::from_le_bytes(rows);
        let has = match (state, rows) {
            (0, 0) => Has::All,
            (1, partial @ (0 | 1)) => Has::Out { is_partial: partial == 1 },
            (2, 0) => Has::Blank,
            (3, rows) if rows <= self.rows => Has::Rebuilt(rows),
            (4, rows) if rows <= self.rows => Has::Returned(rows),
            (state, rows) => return Err(format!("member {column} is {state} with {rows} rows")),
        };
        let port = usize::from(*port);
        if port >= self.ports {
            return Err(format!("member {column} is behind port {port}, which is not there"));
        }
        let number = u16::from_le_bytes([*low, *high]);
        Ok((usize::from(*column), ArrayMember { port, number, has }))
    }

    /// Takes in a record that says what a member has from then on. Returns the member.
    pub fn record(
        &self,
        payload: &[u8],
        members: &mut [ArrayMember],
    ) -> Result<ArrayMember, String> {
        if payload.len() != MEMBER_BYTES {
            return Err("its payload is not a member".to_owned());
        }
        let (column, member) = self.one(payload)?;
        let known = members.get_mut(column);
        *known.ok_or_else(|| format!("member {column} is not there"))? = member;
        Ok(member)
    }
}

/// What a member has in words, which has so many of its rows; nothing when it has all. `gets` says what one that
/// is out gets when it is back.
pub(super) fn words_of(has: Has, (done, rows): (u64, u64), gets: &str) -> Option<String> {
    match has {
        Has::All => None,
        Has::Out { is_partial } => {
            let gets = if is_partial { "all rows" } else { gets };
            Some(format!("it is out, and gets {gets} when it is back"))
        }
        Has::Blank => Some("it is a new disk that has nothing yet".to_owned()),
        Has::Rebuilt(_) => Some(format!("it is being rebuilt, and has {done} of {rows} rows")),
        Has::Returned(_) => {
            Some(format!("it was away and has come back, and has {done} of {rows} rows"))
        }
    }
}

/// The structure of findings about an array as a whole.
pub(super) const ARRAY: &str = "array";
/// Bytes of a member.
const MEMBER_BYTES: usize = 13;
/// The kind of a record that says what a member has.
pub(super) const MEMBER: u8 = 1;
