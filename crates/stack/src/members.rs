//! The members of a stack: what lies behind each port of a layer that keeps state there, and its
//! number in the set.

use super::config::{ConfigError, StackConfig};
use super::options::{ListedMember, MemberNumbers};
use imbrex_core::layer::Port;
use std::borrow::Cow;

/// A member of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackMember {
    /// The layer that keeps state on it.
    pub node: String,
    /// What the port of the layer is called that leads to it.
    pub port_name: Cow<'static, str>,
    /// The port.
    pub port: Port,
    /// Its number in the set.
    pub number: u16,
}

/// The members of a stack, in the order of the nodes and of their ports.
///
/// # Errors
/// When a list does not name exactly the members that there are.
pub(super) fn members(
    config: &StackConfig,
    numbers: &MemberNumbers,
) -> Result<Vec<StackMember>, ConfigError> {
    let ports = config.node.iter().flat_map(|node| {
        node.node().members().into_iter().map(|(port_name, port)| (node.name(), port_name, port))
    });
    let mut members: Vec<StackMember> = (1..)
        .zip(ports)
        .map(|(number, (node, port_name, port))| StackMember {
            node: node.to_owned(),
            port_name,
            port,
            number,
        })
        .collect();
    if let MemberNumbers::Listed(list) = numbers {
        take_listed(list, &mut members)?;
    }
    Ok(members)
}

fn take_listed(list: &[ListedMember], members: &mut [StackMember]) -> Result<(), ConfigError> {
    for member in &mut *members {
        let StackMember { node, port_name, .. } = &member;
        let is_it = |listed: &&ListedMember| listed.node == *node && *port_name == *listed.port;
        let found = list.iter().find(is_it).ok_or_else(|| {
            let words = format!("the image lists no member for `{port_name}` of node `{node}`");
            ConfigError::words(words)
        })?;
        member.number = found.number;
    }
    if list.len() > members.len() {
        let is_known = |listed: &&ListedMember| {
            let mut members = members.iter();
            !members.any(|it| it.node == listed.node && it.port_name == *listed.port)
        };
        let listed = list.iter().find(is_known).unwrap_or(&list[0]);
        return Err(ConfigError::words(format!(
            "the image lists member {} for `{}` of node `{}`, which the stack has not, or twice",
            listed.number, listed.port, listed.node
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuildOptions, Plan};

    fn config() -> StackConfig {
        StackConfig::load("pore", &[]).expect("a ready-made stack")
    }

    type Numbered = Vec<(String, Cow<'static, str>, u16)>;

    fn planned(numbers: MemberNumbers) -> Result<Numbered, String> {
        let options = BuildOptions { members: numbers, ..BuildOptions::simulate(1) };
        let plan = Plan::new(&config(), &options).map_err(|error| error.to_string())?;
        let members = plan.members().iter();
        Ok(members.map(|it| (it.node.clone(), it.port_name.clone(), it.number)).collect())
    }

    fn listed(entries: &[(u16, &str, &str)]) -> MemberNumbers {
        let listed = |(number, node, port): &(u16, &str, &str)| ListedMember {
            number: *number,
            node: (*node).to_owned(),
            port: (*port).to_owned(),
        };
        MemberNumbers::Listed(entries.iter().map(listed).collect())
    }

    #[test]
    fn members_are_counted_or_listed() {
        let numbered = |numbers: [u16; 3]| {
            let ports = [("translation", "below"), ("cache", "flash"), ("cache", "backing")];
            let members = ports.iter().zip(numbers);
            let members =
                members.map(|((node, port), number)| ((*node).to_owned(), (*port).into(), number));
            Ok(members.collect::<Vec<_>>())
        };
        let counted = planned(MemberNumbers::Counted);
        assert_eq!(counted, numbered([1, 2, 3]));
        let list = [(9, "cache", "backing"), (4, "cache", "flash"), (1, "translation", "below")];
        assert_eq!(planned(listed(&list)), numbered([1, 4, 9]));
    }

    #[test]
    fn a_list_that_does_not_fit_the_stack_is_refused() {
        let list = [(1, "translation", "below"), (2, "cache", "flash")];
        let missing = "the image lists no member for `backing` of node `cache`";
        assert_eq!(planned(listed(&list)), Err(missing.to_owned()));
        let list = [&list[..], &[(3, "cache", "backing"), (4, "cache", "log")]].concat();
        let unknown =
            "the image lists member 4 for `log` of node `cache`, which the stack has not, or twice";
        assert_eq!(planned(listed(&list)), Err(unknown.to_owned()));
    }
}
