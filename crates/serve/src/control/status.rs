//! What `status` says of nodes and of the device.

use super::Commands;
use super::array::{self, ArrayNames, PortNames};
use super::targets::{ControlNode, Targets};
use imbrex_core::command::{NodeStatus, Without};
use imbrex_core::counters::Counts;
use imbrex_core::idle_control::ControlStatus;
use imbrex_core::stack::NodeId;
use imbrex_core::words::Words;
use serde_json::{Map, Value, json};

/// What a node without a name is called.
const NO_NAME: &str = "another node";
const NS_PER_S: f64 = 1e9;

/// What has been counted at a node, by the names of reports.
pub type NodeFigures = Box<dyn Fn(NodeId, &Counts) -> Vec<(&'static str, u64)>>;
/// What the device was asked for and how long it took, by the names of reports.
pub type DeviceFigures = Box<dyn Fn() -> Map<String, Value>>;

/// What `status` tells beside what the layers say themselves. Only whoever made the stack knows it.
pub struct Figures {
    /// Of a node.
    pub of_node: NodeFigures,
    /// Of the device.
    pub of_device: DeviceFigures,
}

/// How a node is, as a client is told.
pub(super) fn of_node(
    node: &ControlNode,
    status: &NodeStatus,
    targets: &Targets,
    commands: &Commands,
) -> Value {
    let figures = commands.figures.as_ref();
    let mut facts: Map<String, Value> = Map::new();
    let counts = status.counts.as_deref();
    let counted = figures.zip(counts).map(|(figures, counts)| (figures.of_node)(node.node, counts));
    let known = status.facts.iter().copied();
    for (name, value) in counted.into_iter().flatten().chain(known) {
        facts.insert(name.to_owned(), json!(value));
    }
    let mut told = json!({"node": node.name, "is_lost": status.is_lost, "facts": facts});
    // Other commands are answered without.
    if counts.is_some() {
        if let Some(words) = commands.files.words_of(&node.name) {
            told["file"] = json!(words);
        }
        if let Some(array) = &status.array {
            told["array"] = array::told(array, &array_names(node, targets), status.is_lost);
        }
        if let Some(controller) = &status.controller {
            told["controller"] = told_of_controller(controller);
        }
        told["when_lost"] = json!(when_lost(node, &status.above, targets));
    }
    told
}

/// How a controller is, as a client is told.
fn told_of_controller(status: &ControlStatus) -> Value {
    let ControlStatus { policy, is_on, phase, used, idle, held } = status;
    json!({
        "policy": policy.word(),
        "is_on": is_on,
        "phase": phase.word(),
        "used": used,
        "idle_s": idle.map(|idle| idle.0 as f64 / NS_PER_S),
        "held": held,
    })
}

/// What an array and the nodes below it are called.
fn array_names(node: &ControlNode, targets: &Targets) -> ArrayNames {
    let ports = node.below.iter().map(|(below, disks)| PortNames {
        node: targets.name_of(*below).unwrap_or(NO_NAME).to_owned(),
        disks: disks
            .iter()
            .map(|disk| targets.name_of_disk(*disk).unwrap_or(NO_NAME).to_owned())
            .collect(),
    });
    ArrayNames { node: node.name.clone(), ports: ports.collect() }
}

/// How all of it is.
pub(super) fn of_device(nodes: Vec<Value>, figures: Option<&Figures>) -> Value {
    let mut told = figures.map_or_else(Map::new, |figures| (figures.of_device)());
    told.insert("nodes".to_owned(), Value::Array(nodes));
    Value::Object(told)
}

/// Why a disk is not taken out: what would be lost with it.
pub(super) fn refusal(
    node: &ControlNode,
    above: &[(NodeId, Without)],
    targets: &Targets,
) -> String {
    format!(
        "node `{}`: nothing else has what is on this disk; without it {}; accepted: `fail` when an \
         array has its data elsewhere, or with --force (`\"force\": true`)",
        node.name,
        when_lost(node, above, targets)
    )
}

/// What it means here that a node is lost, in words.
fn when_lost(node: &ControlNode, above: &[(NodeId, Without)], targets: &Targets) -> String {
    let named = |id: &NodeId| targets.name_of(*id).unwrap_or(NO_NAME).to_owned();
    let is_device_lost = node.node == node.top || above.contains(&(node.top, Without::Lost));
    let above = above.iter();
    let lost = above.clone().filter(|(_, it)| *it == Without::Lost);
    let lost: Vec<String> = lost.map(|(id, _)| named(id)).collect();
    let mut words = Vec::new();
    match lost.as_slice() {
        [] => {}
        [one] => words.push(format!("{one} is lost too")),
        [rest @ .., last] => words.push(format!("{} and {last} are lost too", rest.join(", "))),
    }
    let goes_on = above.filter_map(|(id, it)| match it {
        Without::GoesOn(missing) => Some(format!("{} goes on: {missing}", named(id))),
        Without::Lost => None,
    });
    words.extend(goes_on);
    words.push(match is_device_lost {
        true => "requests of the device end with an error".to_owned(),
        false => "the device is served on".to_owned(),
    });
    words.join("; ")
}
