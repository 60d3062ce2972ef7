//! Whether the stack on the command line is the one that an image was made for.

use crate::args::ServeArgs;
use crate::commands::stack::settings;
use crate::failure::Failure;
use imbrex_drives::toml_error::listed;
use imbrex_serve::image::Image;
use imbrex_stack::{StackConfig, ready_made};
use std::path::Path;
use toml::{Table, Value};

/// Keys of a stack that are no settings: words for people, and what `create` has measured.
const WORDS: [&str; 2] = ["description", "measured_blocks"];

/// The stack of an image. It must be the one that was asked for: by name alone when that is a
/// ready-made one, and with every setting when it is a file or has settings.
pub fn stack_of_image(
    args: &ServeArgs,
    data: &Path,
    image: &Image,
) -> Result<StackConfig, Failure> {
    let kept = StackConfig::from_image(&image.description().stack_toml)?;
    let mut asked = StackConfig::load(&args.stack, &settings(&args.set)?)?;
    let data = data.display();
    if kept.name != asked.name {
        return Err(format!(
            "{data}: the image was created for the stack `{}`, not `{}`",
            kept.name, asked.name
        )
        .into());
    }
    if is_name(&args.stack, &asked) && args.set.is_empty() {
        return Ok(kept);
    }
    // What is not said is the size of the drive, and whether there are checksums and spare slots. The image states
    // all of them.
    asked.size = asked.size.or(kept.size);
    asked.take_checksums(&kept);
    asked.take_spare_slots(&kept);
    let difference = first_difference(&Table::try_from(&asked)?, &Table::try_from(&kept)?);
    match difference {
        None => Ok(kept),
        Some(difference) => Err(format!("{data}: {difference}").into()),
    }
}

/// True when a stack was named, and not a file of it: then an image keeps its settings by itself.
pub fn is_name(name_or_path: &str, stack: &StackConfig) -> bool {
    ready_made().any(|name| name == name_or_path)
        || (name_or_path.eq_ignore_ascii_case(&stack.name) && !Path::new(name_or_path).is_file())
}

/// The first key in which two stacks differ, in words.
fn first_difference(asked: &Table, kept: &Table) -> Option<String> {
    let nodes = |table: &Table| -> Vec<Table> {
        let nodes = table.get("node").and_then(Value::as_array);
        let tables = nodes.into_iter().flatten().filter_map(Value::as_table);
        tables.cloned().collect()
    };
    if let Some(difference) = key_difference("", asked, kept) {
        return Some(difference);
    }
    let (asked, kept) = (nodes(asked), nodes(kept));
    let names = |nodes: &[Table]| -> Vec<String> {
        nodes.iter().map(|node| shown(node.get("name"))).collect()
    };
    if names(&asked) != names(&kept) {
        return Some(format!(
            "the nodes are {} here, and {} in the image",
            listed(names(&asked)),
            listed(names(&kept))
        ));
    }
    asked.iter().zip(&kept).find_map(|(asked, kept)| {
        let name = asked.get("name").and_then(Value::as_str).unwrap_or_default();
        key_difference(&format!("{name}."), asked, kept)
    })
}

fn key_difference(prefix: &str, asked: &Table, kept: &Table) -> Option<String> {
    let keys = asked.keys().chain(kept.keys());
    let mut settings = keys.filter(|key| !WORDS.contains(&key.as_str()) && *key != "node");
    settings.find_map(|key| {
        let (asked, kept) = (asked.get(key), kept.get(key));
        if let (Some(Value::Table(asked)), Some(Value::Table(kept))) = (asked, kept) {
            return key_difference(&format!("{prefix}{key}."), asked, kept);
        }
        (asked != kept).then(|| {
            format!("{prefix}{key} is {} here, and {} in the image", shown(asked), shown(kept))
        })
    })
}

fn shown(value: Option<&Value>) -> String {
    value.map_or("not set".to_string(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(asked: &str, kept: &str) -> Option<String> {
        let table = |text: &str| text.parse::<Table>().expect("TOML");
        first_difference(&table(asked), &table(kept))
    }

    #[test]
    fn the_first_key_that_differs_is_named_with_both_values() {
        let one = "name = \"a\"\n[[node]]\nname = \"ssd\"\ncapacity = \"1MiB\"\nbelow = { flash = \"x\" }";
        assert_eq!(difference(one, one), None);
        let described = format!("description = \"words\"\n{one}");
        assert_eq!(difference(&described, one), None);
        assert_eq!(
            difference(&one.replace("1MiB", "2MiB"), one).as_deref(),
            Some("ssd.capacity is \"2MiB\" here, and \"1MiB\" in the image")
        );
        assert_eq!(
            difference(&one.replace("\"x\"", "\"y\""), one).as_deref(),
            Some("ssd.below.flash is \"y\" here, and \"x\" in the image")
        );
        assert_eq!(
            difference(one, &one.replace("capacity = \"1MiB\"\n", "")).as_deref(),
            Some("ssd.capacity is \"1MiB\" here, and not set in the image")
        );
        assert_eq!(
            difference(one, &one.replace("ssd", "sdd")).as_deref(),
            Some("the nodes are \"ssd\" here, and \"sdd\" in the image")
        );
    }
}
