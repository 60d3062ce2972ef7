//! What an array tells of its members.

use super::members::State;
use super::status::{ArrayStatus, MemberHas, MemberStatus, WorkStatus};
use super::{RowMap, Rows};
use crate::layer::Port;
use crate::units::Instant;
use alloc::vec::Vec;

impl Rows {
    /// How the array and each of its members is.
    pub fn array_status<M: RowMap>(
        &self,
        map: &M,
        now: Instant,
        is_lost: &dyn Fn(Port) -> bool,
    ) -> ArrayStatus {
        let member = |column: usize| {
            let port = self.members.port(column);
            MemberStatus {
                port: port.0,
                is_lost: is_lost(port),
                has: match self.members.state(column) {
                    State::In => MemberHas::All,
                    State::Out => MemberHas::Nothing,
                    State::Blank => MemberHas::NewDisk,
                    State::Rebuilding(_) => MemberHas::Some,
                    State::Returning(_) => MemberHas::Older,
                },
                work: self.work_on(column, now),
            }
        };
        ArrayStatus {
            has_all: self.members.have_all(map.redundancy()),
            members: (0..self.members.columns()).map(member).collect(),
            spares: self.members.spare_ports().map(|port| port.0).collect::<Vec<u8>>(),
            ..ArrayStatus::default()
        }
    }

    /// Adds what there is to know of the members by name.
    pub fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        facts.push(("members", self.members.columns() as u64));
        facts.push(("members_lacking", self.members.lacking() as u64));
        facts.push(("spares_left", self.members.spares() as u64));
        if let Some(rebuild) = &self.rebuild {
            facts.push(("rebuilt_rows", rebuild.next_row()));
        }
    }

    /// How far a member has been given what it lacks, if it is the one that is given it now.
    fn work_on(&self, column: usize, now: Instant) -> Option<WorkStatus> {
        self.rebuild.as_ref().filter(|rebuild| rebuild.is_of(column)).map(|it| it.status(now))
    }
}
