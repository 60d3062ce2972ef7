//! What the expressions of an experiment may name: its workloads, the swept keys with their values, its systems.

use super::expression::Expression;
use imbrex_drives::toml_error::{listed, nearest};
use std::collections::BTreeMap;

/// What an experiment has.
pub(super) struct Known<'a> {
    /// The names of its workloads.
    pub workloads: Vec<String>,
    /// Swept keys and their values.
    pub sweep: &'a BTreeMap<String, Vec<toml::Value>>,
    /// The names of its systems; none while those of stacks in files are not known.
    pub systems: Option<Vec<String>>,
}

impl Known<'_> {
    /// Finds a name that no workload has.
    pub fn check_workloads<'b>(
        &self,
        names: impl IntoIterator<Item = &'b String>,
    ) -> Result<(), String> {
        let known = &self.workloads;
        match names.into_iter().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "no workload is named `{name}`{} (named are: {})",
                hint(name, known),
                listed(known)
            )),
        }
    }

    /// Finds keys that are not swept, and values that they never have.
    pub fn check_quantities(&self, expression: &Expression) -> Result<(), String> {
        for (key, value) in expression.quantities().iter().flat_map(|quantity| &quantity.at) {
            let found = self.sweep.iter().find(|(swept, _)| is_key(swept, key));
            let (swept, values) = found.ok_or_else(|| format!("`{key}` is not swept"))?;
            if !values.iter().any(|v| same(&text_of(v), value)) {
                return Err(format!(
                    "{swept} is never `{value}`; it is {}",
                    listed(values.iter().map(text_of))
                ));
            }
        }
        Ok(())
    }

    /// Finds systems that there are not.
    pub fn check_systems(&self, expression: &Expression) -> Result<(), String> {
        let Some(known) = &self.systems else {
            return Ok(());
        };
        let quantities = expression.quantities();
        match quantities.iter().find(|quantity| !known.contains(&quantity.system)) {
            None => Ok(()),
            Some(quantity) => Err(format!(
                "no run has the system `{}`{} (accepted: {})",
                quantity.system,
                hint(&quantity.system, known),
                listed(known)
            )),
        }
    }
}

fn hint(name: &str, known: &[String]) -> String {
    nearest(name, known.iter().map(String::as_str))
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// True when `short` is a swept key or its last part.
pub(super) fn is_key(swept: &str, short: &str) -> bool {
    swept == short || swept.rsplit('.').next() == Some(short)
}

/// True for equal texts, whatever blanks a list has, and equal numbers.
pub(super) fn same(a: &str, b: &str) -> bool {
    let without_blanks = |text: &str| text.replace(' ', "");
    without_blanks(a) == without_blanks(b)
        || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// A swept or set value as a person would write it.
pub(super) fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
