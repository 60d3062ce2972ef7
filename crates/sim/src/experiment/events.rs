//! The `[[event]]` tables of an experiment: commands to nodes while the workload is replayed.

use super::RunError;
use crate::events::{AT_S_MAX, Event, EventAction, MakeDisk, NeverGiven, When};
use imbrex_core::buffer::ContentKind;
use imbrex_core::command::{CommandKind, Rate as CommandRate};
use imbrex_core::disk::Disk;
use imbrex_core::stack::Stack;
use imbrex_core::units::Instant;
use imbrex_drives::quantity::Rate;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_stack::{ConfigError, Describe, Footprint, NodeConfig, Plan, StackConfig};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// A command to a node at an instant of the replay, or after so many requests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventConfig {
    /// Seconds from the start of the replay.
    pub at_s: Option<f64>,
    /// Requests issued before; the command comes before the next one.
    pub after_requests: Option<u64>,
    /// The name of the node. Stacks that have no such node go without the event.
    pub node: String,
    /// What it is to do.
    pub command: EventCommand,
    /// How fast `rebuild` and `scrub` may go, such as "50 MiB/s"; as fast as it goes when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Accepted by no command: a simulated disk is replaced by a new simulated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What a node is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventCommand {
    /// Any node: say how it is.
    Status,
    /// A disk: it is lost.
    Fail,
    /// A disk: a new one of the same drive takes the place of a lost one.
    Replace,
    /// An array: bring what a replaced disk lacks back onto it.
    Rebuild,
    /// An array: read everything and compare it.
    Scrub,
    /// A controller: let all requests pass.
    Off,
    /// A controller that is off: hold requests again as its policy says.
    On,
}

impl EventCommand {
    fn word(self) -> &'static str {
        match self {
            EventCommand::Status => "status",
            EventCommand::Fail => "fail",
            EventCommand::Replace => "replace",
            EventCommand::Rebuild => "rebuild",
            EventCommand::Scrub => "scrub",
            EventCommand::Off => "off",
            EventCommand::On => "on",
        }
    }
}

impl EventConfig {
    /// What is wrong with it, whatever the stack.
    fn check(&self) -> Result<(), String> {
        let command = self.command.word();
        match (self.at_s, self.after_requests) {
            (Some(at_s), None) if (0.0..=AT_S_MAX).contains(&at_s) => {}
            (Some(at_s), None) => {
                return Err(format!("at_s = {at_s}; accepted: seconds from 0 to {AT_S_MAX}"));
            }
            (None, Some(_)) => {}
            _ => return Err("accepted: one of `at_s` and `after_requests`".into()),
        }
        if let Some(path) = &self.path {
            return Err(format!(
                "path = {path:?}: a simulated disk is replaced by a new simulated disk of the same \
                 drive; accepted: no `path`"
            ));
        }
        let takes_rate = matches!(self.command, EventCommand::Rebuild | EventCommand::Scrub);
        match self.rate {
            Some(_) if !takes_rate => {
                Err(format!("`{command}` has no `rate`; accepted by: rebuild, scrub"))
            }
            Some(Rate(0)) => Err("rate: accepted: more than nothing".into()),
            _ => Ok(()),
        }
    }

    /// What is wrong with it on a stack that has the node.
    fn check_on(&self, node: &NodeConfig) -> Result<(), String> {
        let is_disk = node.disk().is_some();
        let (name, command) = (&self.node, self.command.word());
        match self.command {
            EventCommand::Fail | EventCommand::Replace if !is_disk => {
                Err(format!("node `{name}` is no disk; accepted by `{command}`: disks"))
            }
            EventCommand::Rebuild | EventCommand::Scrub if is_disk => {
                Err(format!("node `{name}` is a disk; accepted by `{command}`: arrays"))
            }
            EventCommand::Off | EventCommand::On if is_disk => {
                Err(format!("node `{name}` is a disk; accepted by `{command}`: controllers"))
            }
            _ => Ok(()),
        }
    }

    fn when(&self) -> When {
        match (self.at_s, self.after_requests) {
            (_, Some(count)) => When::AfterRequests(count),
            (at_s, None) => When::At(Instant((at_s.unwrap_or(0.0) * 1e9).round() as u64)),
        }
    }
}

/// Finds events that no stack can have.
///
/// # Errors
/// When there is one; names its place in the file, from 1.
pub(super) fn check_events<'a>(
    file: &str,
    events: &[EventConfig],
    stacks: impl Iterator<Item = &'a StackConfig> + Clone,
) -> Result<(), ConfigError> {
    for (number, event) in (1..).zip(events) {
        let wrong =
            |words: String| ConfigError::words(format!("{file}: [[event]] {number}: {words}"));
        event.check().map_err(wrong)?;
        let mut found = stacks.clone().filter_map(|stack| stack.node(&event.node));
        let Some(first) = found.next() else {
            let nodes = stacks.clone().flat_map(|stack| &stack.node);
            let names: Vec<&str> = nodes.map(NodeConfig::name).collect();
            let hint = nearest(&event.node, names.iter().copied())
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(format!(
                "no stack has a node `{}`{hint} (nodes: {})",
                event.node,
                listed(&names)
            )));
        };
        for node in [first].into_iter().chain(found) {
            event.check_on(node).map_err(wrong)?;
        }
    }
    Ok(())
}

/// The events of a run: those whose node the stack has.
pub(super) fn events_of<'a>(
    events: &[EventConfig],
    plan: &'a Plan,
    footprint: Option<Footprint>,
    describe: &Describe,
    stack: &Stack,
) -> Vec<Event<'a>> {
    let of_stack = events.iter().filter_map(|event| {
        let node = describe.nodes.iter().find(|node| node.name == event.node)?;
        let rate = event.rate.map(|Rate(bytes_per_s)| CommandRate { bytes_per_s });
        let action = match event.command {
            EventCommand::Status => EventAction::Command(CommandKind::Status),
            EventCommand::Fail => EventAction::Command(CommandKind::Fail),
            EventCommand::Rebuild => EventAction::Command(CommandKind::Rebuild(rate)),
            EventCommand::Scrub => EventAction::Command(CommandKind::Scrub(rate)),
            EventCommand::Off => EventAction::Command(CommandKind::Switch { is_on: false }),
            EventCommand::On => EventAction::Command(CommandKind::Switch { is_on: true }),
            EventCommand::Replace => {
                let disk = stack.disk_of(node.id)?;
                let of_node = describe.disks().find(|disk| disk.name() == event.node)?;
                let statistics = Rc::clone(of_node.statistics());
                let name = event.node.clone();
                let make: MakeDisk<'a> = Box::new(move || {
                    let design = plan.design(&name, footprint, ContentKind::Counted);
                    let mut design = design.map_err(|error| error.to_string())?;
                    design.count_into(Rc::clone(&statistics));
                    let disk = design.simulate().map_err(|error| error.to_string())?;
                    Ok(Box::new(disk) as Box<dyn Disk>)
                });
                EventAction::Replace { disk, members: stack.members_on(disk).len() as u16, make }
            }
        };
        Some(Event {
            when: event.when(),
            node: node.id,
            action,
            name: event.node.clone(),
            command: event.command.word().to_string(),
        })
    });
    of_stack.collect()
}

/// An event for which the workload is too short.
pub(super) fn too_few_requests(system: &str, event: NeverGiven, requests: u64) -> RunError {
    let NeverGiven { node, command, needed } = event;
    ConfigError::words(format!(
        "system `{system}`: [[event]] `{command}` of node `{node}`: after_requests = {needed}, and the \
         workload has {requests} requests; accepted: no more than that"
    ))
    .into()
}
