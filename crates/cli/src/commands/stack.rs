//! The stack that a command is about.

use crate::failure::{Failure, usage, usage_if_option};
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_stack::{NodeConfig, Setting, StackConfig, check_taken, ready_made};

/// The end of the names that `all` leaves out: caches that are among the others too, over another drive.
const ARCHIVE: &str = "-archive";

/// The settings of `--set`.
pub fn settings(texts: &[String]) -> Result<Vec<Setting>, Failure> {
    texts.iter().map(|text| setting(text)).collect()
}

fn setting(text: &str) -> Result<Setting, Failure> {
    Setting::parse(text).map_err(usage_if_option)
}

/// A setting of one stack of several.
pub struct OwnSetting {
    /// The name of the stack.
    pub stack: String,
    /// What is set.
    pub setting: Setting,
}

/// The settings of `--set` where it may name a stack: those of all stacks, and those of one.
pub fn settings_of_stacks(
    texts: &[String],
    stacks: &[String],
) -> Result<(Vec<Setting>, Vec<OwnSetting>), Failure> {
    let (mut of_all, mut of_one) = (Vec::new(), Vec::new());
    for text in texts {
        let path = text.split('=').next().unwrap_or_default();
        // A stack may be a file, whose name may have dots; keys have no colon.
        let Some((stack, _)) = path.rsplit_once(':') else {
            of_all.push(setting(text)?);
            continue;
        };
        if !stacks.iter().any(|known| known == stack) {
            return Err(usage(format!(
                "--set {text}: `{stack}` is not compared; accepted: STACK:NODE.KEY=VALUE with one of {}",
                listed(stacks)
            )));
        }
        let setting = setting(&text[stack.len() + 1..])?;
        of_one.push(OwnSetting { stack: stack.to_string(), setting });
    }
    Ok((of_all, of_one))
}

/// The stacks that `--systems` names: `all` and patterns with `*` stand for ready-made ones.
pub fn systems(names: &[String]) -> Result<Vec<String>, Failure> {
    let mut systems: Vec<String> = Vec::new();
    for name in names {
        let found: Vec<&str> = match name.as_str() {
            "all" => ready_made().filter(|known| !known.ends_with(ARCHIVE)).collect(),
            pattern if pattern.contains('*') => {
                ready_made().filter(|known| matches(pattern, known)).collect()
            }
            name => vec![name],
        };
        if found.is_empty() {
            let known: Vec<&str> = ready_made().collect();
            return Err(usage(format!(
                "--systems {name}: no ready-made stack has such a name; accepted: a pattern of some of {}",
                listed(&known)
            )));
        }
        // One that two patterns name runs once; one that is written twice is compared with itself.
        let is_pattern = found.len() > 1 || found[0] != name;
        let is_new = |known: &&str| !is_pattern || !systems.iter().any(|other| other == known);
        let new: Vec<String> = found.into_iter().filter(is_new).map(str::to_string).collect();
        systems.extend(new);
    }
    Ok(systems)
}

/// Whether a name is like a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))
        }),
    }
}

/// The one stack that a command is about, each of its settings applied to a node it has.
pub fn stack_with_settings(name: &str, set: &[String]) -> Result<StackConfig, Failure> {
    let settings = settings(set)?;
    let config = StackConfig::load(name, &settings).map_err(usage_if_option)?;
    check_nodes(&config, &settings)?;
    Ok(config)
}

/// Every setting must be of a node that the one stack of a command has.
pub fn check_nodes(config: &StackConfig, settings: &[Setting]) -> Result<(), Failure> {
    for setting in settings {
        let Setting { node, key, .. } = setting;
        if config.has_node(node) {
            check_taken(setting, [config].into_iter(), "the stack").map_err(usage_if_option)?;
            continue;
        }
        let nodes: Vec<&str> = config.node.iter().map(NodeConfig::name).collect();
        let hint = nearest(node, nodes.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(usage(format!(
            "--set {node}.{key}: the stack `{}` has no node `{node}`{hint} (nodes: {})",
            config.name,
            listed(&nodes)
        )));
    }
    Ok(())
}

/// Refuses to serve what cannot be served.
pub fn refuse_unservable(config: &StackConfig) -> Result<(), Failure> {
    let reason = config.node.iter().find_map(NodeConfig::refused_by_serving);
    reason.map_or(Ok(()), |reason| Err(reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_ready_made_stacks() {
        assert!(matches("pore*", "pore") && matches("*", "lru") && matches("p*-c*", "pore-cf"));
        assert!(!matches("pore-*", "pore") && !matches("*x", "pore"));
        let of =
            |names: &[&str]| systems(&names.iter().map(|it| it.to_string()).collect::<Vec<_>>());
        let named = of(&["pore-?f", "pore", "pore", "pore-c*", "pore-*f"]).expect("names");
        assert_eq!(named, ["pore-?f", "pore", "pore", "pore-cf", "pore-pf"]);
        let all = of(&["all"]).expect("all");
        assert!(all.len() > 20 && !all.iter().any(|name| name.ends_with("-archive")));
        assert!(of(&["x*"]).is_err());
    }
}
