//! What `status` says of an array: what each member has, what is under way, and what to do next.

use imbrex_core::array::status::{ArrayStatus, MemberHas, MemberStatus, WorkStatus};
use imbrex_core::units::BLOCK_BYTES;
use serde_json::{Value, json};

/// What the parts of an array are called.
pub(super) struct ArrayNames {
    /// The array.
    pub node: String,
    /// The node behind each port.
    pub ports: Vec<PortNames>,
}

/// What a node below an array is called.
pub(super) struct PortNames {
    pub node: String,
    /// The disks that it stands on.
    pub disks: Vec<String>,
}

/// How an array is, as a client is told.
pub(super) fn told(status: &ArrayStatus, names: &ArrayNames, is_lost: bool) -> Value {
    let members = status.members.iter().map(|member| {
        let mut told = json!({"node": names.of(member.port).node, "state": state_of(member)});
        add_work(&mut told, member.work);
        told
    });
    let spares = status.spares.iter().map(|port| names.of(*port).node.as_str());
    let mut told = json!({
        "state": state(status, is_lost),
        "members": members.collect::<Vec<_>>(),
        "spares": spares.collect::<Vec<_>>(),
        "unreadable_blocks": status.unreadable_blocks,
        "next": next(status, names, is_lost),
    });
    if status.scrub.is_some() {
        let mut scrub = json!({});
        add_work(&mut scrub, status.scrub);
        told["scrub"] = scrub;
    }
    if let Some((left, all)) = status.slots {
        told["slots_left"] = json!(left);
        told["slots"] = json!(all);
    }
    if !status.unreadable.is_empty() {
        told["unreadable"] = json!(status.unreadable);
    }
    told
}

impl ArrayNames {
    fn of(&self, port: u8) -> &PortNames {
        &self.ports[usize::from(port)]
    }
}

fn state(status: &ArrayStatus, is_lost: bool) -> &'static str {
    let is_given = |member: &MemberStatus| member.work.is_some();
    match status {
        _ if is_lost || !status.has_all => "lost",
        _ if status.members.iter().all(|member| member.has == MemberHas::All) => "whole",
        _ if status.members.iter().any(is_given) => "rebuilding",
        _ => "degraded",
    }
}

fn state_of(member: &MemberStatus) -> &'static str {
    match member.has {
        MemberHas::All => "in",
        MemberHas::Nothing => "out",
        MemberHas::NewDisk => "new disk",
        MemberHas::Some => "rebuilding",
        MemberHas::Older => "returning",
    }
}

/// How far work has come, how fast it goes, and how long it lasts if it goes on like that.
fn add_work(told: &mut Value, work: Option<WorkStatus>) {
    let Some(WorkStatus { done, total, blocks_per_s }) = work else { return };
    told["done_bytes"] = json!(done.saturating_mul(BLOCK_BYTES));
    told["total_bytes"] = json!(total.saturating_mul(BLOCK_BYTES));
    if let Some(speed) = blocks_per_s {
        told["bytes_per_s"] = json!(speed.saturating_mul(BLOCK_BYTES));
        let left = total.saturating_sub(done);
        told["left_s"] = json!(left.checked_div(speed));
    }
}

/// What whoever looks after the array has to do, in words. Nothing where it helps itself.
fn next(status: &ArrayStatus, names: &ArrayNames, is_lost: bool) -> Vec<String> {
    let mut words = Vec::new();
    if is_lost || !status.has_all {
        words.push(
            "the members that are left do not have all blocks: stop the server, put back a disk that had \
             them, and start again"
                .to_owned(),
        );
    } else {
        words.extend(status.members.iter().filter_map(|member| next_of(member, names)));
    }
    let unreadable = status.unreadable_blocks;
    if unreadable > 0 {
        words.push(format!(
            "{unreadable} blocks cannot be read, because no member has them any more: write them again, from a \
             copy of the data"
        ));
    }
    words
}

fn next_of(member: &MemberStatus, names: &ArrayNames) -> Option<String> {
    let PortNames { node, disks } = names.of(member.port);
    let disks = disks.iter().map(|disk| format!("`{disk}`")).collect::<Vec<_>>().join(" and ");
    Some(match member.has {
        MemberHas::NewDisk => {
            format!("the disk of `{node}` was replaced: give `rebuild` to `{}`", names.node)
        }
        MemberHas::Nothing if member.is_lost => {
            format!("`{node}` is lost: give `replace` to {disks}")
        }
        MemberHas::Nothing => format!(
            "an operation of `{node}` has failed: give `fail` and then `replace` to {disks}, or start the \
             server again to have it brought up to date"
        ),
        MemberHas::Some | MemberHas::Older if member.work.is_none() => {
            format!("`{node}` is not given what it lacks now: that goes on at the next start")
        }
        MemberHas::All | MemberHas::Some | MemberHas::Older => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ArrayNames {
        let port = |node: &str, disk: &str| PortNames {
            node: node.to_owned(),
            disks: vec![disk.to_owned()],
        };
        let ports = vec![port("left", "d0"), port("right", "d1"), port("spare", "d2")];
        ArrayNames { node: "array".to_owned(), ports }
    }

    fn member(port: u8, has: MemberHas) -> MemberStatus {
        MemberStatus { port, is_lost: false, has, work: None }
    }

    fn of(second: MemberStatus) -> Value {
        let status = ArrayStatus {
            has_all: true,
            members: vec![member(0, MemberHas::All), second],
            ..ArrayStatus::default()
        };
        told(&status, &names(), false)
    }

    #[test]
    fn an_array_says_what_to_do_next() {
        let whole = of(member(1, MemberHas::All));
        assert_eq!((&whole["state"], &whole["next"]), (&json!("whole"), &json!([])));
        let lost = MemberStatus { is_lost: true, ..member(1, MemberHas::Nothing) };
        for (member, state, words) in [
            (lost, "out", "`right` is lost: give `replace` to `d1`"),
            (
                member(1, MemberHas::Nothing),
                "out",
                "an operation of `right` has failed: give `fail` and then `replace` to `d1`, or start the server \
                 again to have it brought up to date",
            ),
            (
                member(1, MemberHas::NewDisk),
                "new disk",
                "the disk of `right` was replaced: give `rebuild` to `array`",
            ),
            (
                member(2, MemberHas::Some),
                "rebuilding",
                "`spare` is not given what it lacks now: that goes on at the next start",
            ),
        ] {
            let told = of(member);
            assert_eq!(told["state"], "degraded", "{told}");
            assert_eq!(told["members"][1]["state"], state, "{told}");
            assert_eq!(told["next"], json!([words]), "{told}");
        }
    }

    #[test]
    fn an_array_that_is_rebuilt_tells_how_far_how_fast_and_how_long() {
        let work = |blocks_per_s| Some(WorkStatus { done: 256, total: 1024, blocks_per_s });
        let at = |speed| of(MemberStatus { work: work(speed), ..member(1, MemberHas::Older) });
        let told = at(Some(128));
        assert_eq!((&told["state"], &told["next"]), (&json!("rebuilding"), &json!([])));
        let expected = json!({
            "node": "right", "state": "returning", "done_bytes": 1 << 20, "total_bytes": 4 << 20,
            "bytes_per_s": 512 << 10, "left_s": 6,
        });
        assert_eq!(told["members"][1], expected);
        assert_eq!(at(Some(0))["members"][1]["left_s"], Value::Null, "it hangs");
        assert_eq!(at(None)["members"][1].get("left_s"), None);
    }

    #[test]
    fn what_is_lost_is_told_and_where() {
        let status = ArrayStatus {
            has_all: false,
            members: vec![member(0, MemberHas::Nothing), member(1, MemberHas::Nothing)],
            spares: vec![2],
            scrub: Some(WorkStatus { done: 1, total: 2, blocks_per_s: None }),
            unreadable_blocks: 3,
            unreadable: vec![(4, 6), (9, 10)],
            slots: Some((7, 40)),
        };
        let told = told(&status, &names(), false);
        assert_eq!((&told["state"], &told["spares"]), (&json!("lost"), &json!(["spare"])));
        assert_eq!(told["unreadable"], json!([[4, 6], [9, 10]]));
        assert_eq!((&told["slots_left"], &told["slots"]), (&json!(7), &json!(40)));
        assert_eq!(told["scrub"], json!({"done_bytes": 4096, "total_bytes": 8192}));
        let next = told["next"].as_array().expect("words");
        assert!(next[0].as_str().expect("words").contains("put back a disk that had them"));
        assert!(next[1].as_str().expect("words").starts_with("3 blocks cannot be read"));
        assert_eq!(next.len(), 2);
    }
}
