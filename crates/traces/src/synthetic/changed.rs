//! A recipe with other values than its file has.

use super::Recipe;
use crate::TraceError;
use toml::{Table, Value};

/// The recipe with `KEY=VALUE&KEY=VALUE` in the table of its model. A key that lies deeper has dots: `locality.duration_s`.
///
/// # Errors
/// When there is no such key, or the recipe is impossible with the value.
pub(super) fn changed(recipe: &Recipe, changes: &str) -> Result<Recipe, TraceError> {
    let problem = |reason: String| TraceError::Recipe { path: recipe.name.clone(), reason };
    let mut file: Table =
        toml::from_str(recipe.text()).map_err(|error| problem(error.to_string()))?;
    let mut model = file.iter_mut().filter_map(|(_, value)| value.as_table_mut());
    let model = model.next().expect("a recipe has a table");
    for change in changes.split('&') {
        let (key, value) = change.split_once('=').ok_or_else(|| {
            problem(format!("`{change}`; accepted: KEY=VALUE, such as requests=1000"))
        })?;
        let place = place(model, key).map_err(&problem)?;
        *place = read(value, place);
    }
    let text = toml::to_string(&file).map_err(|error| problem(error.to_string()))?;
    let mut changed = Recipe::parse(&recipe.name, &text)?;
    changed.description =
        format!("{} (changed: {})", recipe.description, changes.replace('&', ", "));
    changed.text = format!("# Changed: {changes}\n{text}");
    Ok(changed)
}

/// Where the value of a key stands.
fn place<'a>(table: &'a mut Table, key: &str) -> Result<&'a mut Value, String> {
    let (first, rest) =
        key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let known: Vec<String> = table.keys().cloned().collect();
    let wrong = || format!("has no key `{first}`; accepted: {}", known.join(", "));
    let value = table.get_mut(first).ok_or_else(wrong)?;
    match (rest, value) {
        (None, Value::Table(inner)) => {
            let inner: Vec<&str> = inner.keys().map(String::as_str).collect();
            Err(format!(
                "`{first}` is a table; accepted: {first}.KEY with one of {}",
                inner.join(", ")
            ))
        }
        (None, value) => Ok(value),
        (Some(rest), Value::Table(inner)) => place(inner, rest),
        (Some(_), _) => Err(format!("`{first}` has no keys of its own; accepted: {first}=VALUE")),
    }
}

/// A value as TOML has it, or a text where it is none. A whole number stands for a fraction where there was one.
fn read(text: &str, before: &Value) -> Value {
    let parsed = toml::from_str::<Table>(&format!("v = {text}")).ok();
    let value = parsed.and_then(|mut table| table.remove("v"));
    match (value, before) {
        (Some(Value::Integer(whole)), Value::Float(_)) => Value::Float(whole as f64),
        (Some(value), _) => value,
        (None, _) => Value::String(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crate::synthetic::{Model, Recipe};

    #[test]
    fn values_of_a_recipe_are_changed_behind_its_name() {
        let path = "synthetic:idler-mix?zones=8&interval_us=[10000, 30000]&sequential_percent=5/2";
        let recipe = Recipe::of_path(path).expect("a recipe").expect("a path of one");
        let Model::ZoneMix(load) = &recipe.model else { panic!("{:?}", recipe.model) };
        assert_eq!((load.zones, load.interval_us, load.requests), (4, [10_000, 30_000], 175_000));
        assert_eq!(load.sequential_percent, 5.0);
        assert!(recipe.label().contains("zones=8, interval_us="), "{}", recipe.label());
        let deep = Recipe::of_path("synthetic:hm-like?locality.duration_s=100").expect("a recipe");
        let Some(Model::Volume(volume)) = deep.map(|deep| deep.model) else { panic!("a volume") };
        assert_eq!(volume.locality.duration_s, 100);
    }

    #[test]
    fn a_change_that_cannot_be_is_one_error() {
        for (path, words) in [
            ("idler-mix?zonez=8", "has no key `zonez`; accepted: "),
            ("idler-mix?zones", "`zones`; accepted: KEY=VALUE, such as requests=1000"),
            ("idler-mix?zones=0", "zones is 0; accepted: 1 to"),
            ("idler-mix?zones=many", "invalid type: string \"many\""),
            ("hm-like?locality=3", "`locality` is a table; accepted: locality.KEY with one of"),
            ("idler-mix?zones.a=3", "`zones` has no keys of its own; accepted: zones=VALUE"),
        ] {
            let error = Recipe::of_path(&format!("synthetic:{path}")).expect_err(path).to_string();
            assert!(error.contains(words), "{path}: {error}");
        }
    }
}
