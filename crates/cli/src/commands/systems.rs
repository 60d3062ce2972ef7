//! `imbrex systems`.

use super::emit;
use crate::Failure;
use imbrex_sim::experiment::{StackConfig, ready_made, stack_text};

/// Lists the ready-made stacks, or prints the TOML of one.
pub fn run(show: Option<&str>, json: bool) -> Result<(), Failure> {
    if let Some(name) = show {
        let (_, text) = stack_text(name)?;
        if json {
            let stack = StackConfig::load(name, &[])?;
            emit(&format!("{}\n", serde_json::to_string(&stack)?));
        } else {
            emit(&text);
        }
        return Ok(());
    }
    let stacks: Vec<StackConfig> = ready_made()
        .map(|name| StackConfig::load(name, &[]))
        .collect::<Result<_, _>>()?;
    if json {
        let list: Vec<_> = stacks
            .iter()
            .map(|s| serde_json::json!({"name": s.name, "description": s.description}))
            .collect();
        emit(&format!("{}\n", serde_json::json!({"systems": list})));
    } else {
        for stack in stacks {
            emit(&format!("{:<10} {}\n", stack.name, stack.description));
        }
    }
    Ok(())
}
