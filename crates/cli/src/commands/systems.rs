//! `imbrex systems`.

use crate::caller::Caller;
use crate::failure::Failure;
use imbrex_stack::{StackConfig, library_drives, ready_made, stack_text};

/// Lists the ready-made stacks and the drives, or prints the TOML of one.
pub fn run(show: Option<&str>, json: bool, caller: &Caller) -> Result<(), Failure> {
    if let Some(name) = show {
        let (_, text) = stack_text(name)?;
        if json {
            let stack = StackConfig::load(name, &[])?;
            caller.emit(&format!("{}\n", serde_json::to_string(&stack)?));
        } else {
            caller.emit(&text);
        }
        return Ok(());
    }
    let stacks: Vec<StackConfig> =
        ready_made().map(|name| StackConfig::load(name, &[])).collect::<Result<_, _>>()?;
    if json {
        let list: Vec<_> = stacks
            .iter()
            .map(|s| serde_json::json!({"name": s.name, "description": s.description}))
            .collect();
        let drives: Vec<_> = library_drives()
            .map(|(name, drive)| serde_json::json!({"name": name, "model": drive.model.name}))
            .collect();
        let document = serde_json::json!({"systems": list, "drives": drives});
        caller.emit(&format!("{document}\n"));
    } else {
        for stack in stacks {
            caller.emit(&format!("{:<16} {}\n", stack.name, stack.description));
        }
        caller.emit("\nDrives of the library, each a stack by itself:\n\n");
        for (name, drive) in library_drives() {
            caller.emit(&format!("{name:<16} {}\n", drive.model.name));
        }
    }
    Ok(())
}
