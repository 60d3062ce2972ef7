//! The stack that a command is about.

use crate::failure::Failure;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_stack::{NodeConfig, Setting, StackConfig, check_taken};

/// The settings of `--set`.
pub fn settings(texts: &[String]) -> Result<Vec<Setting>, Failure> {
    Ok(texts.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?)
}

/// The one stack that a command is about, each of its settings applied to a node it has.
pub fn stack_with_settings(name: &str, set: &[String]) -> Result<StackConfig, Failure> {
    let settings = settings(set)?;
    let config = StackConfig::load(name, &settings)?;
    check_nodes(&config, &settings)?;
    Ok(config)
}

/// Every setting must be of a node that the one stack of a command has.
pub fn check_nodes(config: &StackConfig, settings: &[Setting]) -> Result<(), Failure> {
    for setting in settings {
        let Setting { node, key, .. } = setting;
        if config.has_node(node) {
            check_taken(setting, [config].into_iter(), "the stack")?;
            continue;
        }
        let nodes: Vec<&str> = config.node.iter().map(NodeConfig::name).collect();
        let hint = nearest(node, nodes.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(format!(
            "--set {node}.{key}: the stack `{}` has no node `{node}`{hint} (nodes: {})",
            config.name,
            listed(&nodes)
        )
        .into());
    }
    Ok(())
}

/// Refuses to serve what cannot be served.
pub fn refuse_unservable(config: &StackConfig) -> Result<(), Failure> {
    let reason = config.node.iter().find_map(NodeConfig::refused_by_serving);
    reason.map_or(Ok(()), |reason| Err(reason.into()))
}
